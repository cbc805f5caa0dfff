"""The summary table of the slides of [ZSJBD]: which activations have P1, P2, P3(a), P3(b)."""

from __future__ import annotations

from onehidden import activations
from onehidden.papers.record import Reproduction

COLUMNS = ("P1", "P2", "P3a", "P3b", "P1,2,3")
# As printed: P1, P2, P3.a, P3.b, all.
REPORTED: dict[str, tuple[bool, bool, bool, bool, bool]] = {
    "relu": (True, True, False, True, True),
    "leaky_relu": (True, True, False, True, True),
    "squared_relu": (True, True, True, False, True),
    "sigmoid": (True, True, True, False, True),
    "tanh": (True, True, True, False, True),
    "erf": (True, True, True, False, True),
    "linear": (True, False, True, True, False),
    "quadratic": (False, False, True, False, False),
}


def run(full: bool = False, seed: int = 0) -> Reproduction:
    """Decide every property from values of g' and hold it beside the printed table."""
    rows, same = [], True
    for name in activations.names():
        properties = activations.get(name).properties()
        ours = tuple(bool(properties[c]) for c in COLUMNS)
        printed = REPORTED.get(name)
        same &= printed is None or printed == ours
        verdict = "–" if printed is None else "same" if printed == ours else "differs"
        rows.append((name, *("yes" if v else "no" for v in ours), verdict))
    return Reproduction(
        name="zsjbd-properties",
        title="Three properties of activations",
        paper="[ZSJBD] slides, summary table",
        columns=("activation", "P1", "P2", "P3(a)", "P3(b)", "P1,2,3", "printed"),
        rows=tuple(rows),
        verdict="reproduced" if same else "not reproduced",
        notes=(
            "decided numerically from g' alone; tolerances in onehidden.activation_properties",
            "a dash: not in the printed table. Cubed ReLU has an unbounded g'' and fails P3; GELU is not "
            "monotone and fails P1; |t| is even and fails P1 and P2",
        ),
    )
