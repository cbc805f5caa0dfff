"""The summary table of the slides of [ZSJBD]: which activations have P1, P2, P3(a), P3(b)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onehidden import activations
from onehidden_papers.reproductions.record import Claim, Item, Row, Table, one_of

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


@dataclass(frozen=True)
class Settings:
    """What is compared: the eight printed activations and four that the table does not have."""

    activations: tuple[str, ...] = (
        "relu", "leaky_relu", "squared_relu", "cubed_relu", "sigmoid", "tanh", "erf", "softplus", "gelu",
        "abs", "quadratic", "linear",
    )  # fmt: skip


def judge(rows: Sequence[Row]) -> str:
    found = [row["printed"] for row in rows if row["printed"] != "–"]
    return one_of(len(found) == len(REPORTED) and set(found) == {"same"})


CLAIM = Claim(
    "zsjbd-properties",
    "[ZSJBD] slides, P1, P3, summary table",
    "Which of P1, P2, P3(a), P3(b) eight activations have: 40 entries.",
    "Reproduced: all 40 entries, decided from values of g' alone, are as printed. Else not reproduced.",
    judge,
)


def measure(settings: Settings, seed: int) -> Table:
    """Decide every property from values of g' and hold it beside the printed table."""
    rows = []
    for name in settings.activations:
        properties = activations.get(name).properties()
        ours = tuple(bool(properties[c]) for c in COLUMNS)
        printed = REPORTED.get(name)
        same = "–" if printed is None else "same" if printed == ours else "differs"
        rows.append((name, *("yes" if v else "no" for v in ours), same))
    return Table(
        "Three properties of activations",
        ("activation", "P1", "P2", "P3(a)", "P3(b)", "P1,2,3", "printed"),
        tuple(rows),
        (
            "Decided numerically from g' alone; tolerances in onehidden.activation_properties.",
            "A dash: not in the printed table. Cubed ReLU has an unbounded g'' and fails P3; GELU is not "
            "monotone and fails P1; |t| is even and fails P1 and P2.",
        ),
    )


PROPERTIES = Item(
    "zsjbd-properties", "[ZSJBD] slides", "Which activations have P1, P2, P3.", (CLAIM,), measure,
    default=Settings(), full=Settings(),
)  # fmt: skip
