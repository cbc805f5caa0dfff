"""What a recovery from a source will cost, on paper: passes, bytes and floating-point operations."""

from __future__ import annotations

from dataclasses import dataclass

from onehidden.fit.form import Form
from onehidden.fit.normal_equations import WRITE, by_pairs


@dataclass(frozen=True)
class Cost:
    """Of one kind of pass over n rows.

    Attributes
    ----------
    name : what the pass is for.
    passes : how often it is made.
    bytes : read in one pass.
    flops : done in it, those of matrix products; an entry written to a table on the way counts as 60.
    """

    name: str
    passes: int
    bytes: float
    flops: float

    def seconds(self, read: float, compute: float, workers: int = 1) -> float:
        """Of all its passes, at so many bytes and operations a second and worker."""
        return self.passes * (self.bytes / read + self.flops / compute) / workers


def costs(form: Form, rows: float, steps: int = 4, moments: bool = False) -> list[Cost]:
    """The passes of ``recover(source)``: one survey, a step each, one certificate; and of T_1..T_4 if asked.

    Parameters
    ----------
    form : inputs d, units k and which parameters are free.
    rows : n.
    steps : Levenberg–Marquardt steps over all rows: none without noise, 3 to 6 with it.
    moments : add the two passes of T_1..T_4 in the span of the units.
    """
    d, k = form.d, form.k
    size = 8.0 * rows * (d + form.q)
    slopes, inputs = (k + 1) * (k + 2) / 2, (d + 1) * (d + 2) / 2
    if by_pairs(form):  # one matrix product of the tables of pairs, and the units against the other columns
        normal = 2 * slopes * inputs + 2 * k * (k + 1) * (d + 1) + WRITE * (slopes + inputs + k * (k + 1))
    else:  # the symmetric product J'J
        normal = form.q * (form.size**2 + WRITE * form.size)
    whiten = 2.0 * d * d + WRITE * 2 * d
    found = [
        Cost("survey", 1, size, rows * (2 * (d + 1) ** 2 + WRITE * 3 * (d + 1))),
        Cost("finish", steps + 1, size, rows * (whiten + normal)),
        Cost("certificate", 1, size, rows * (whiten + normal)),
    ]
    if moments:  # k^4 / 24 distinct entries, three times in two passes: control, sums, squares
        entries = k**2 * 6 + 20 * k
        found.append(Cost("moments", 2, size, rows * (2 * d * k + k**4 / 8 + WRITE * (entries + d))))
    return found
