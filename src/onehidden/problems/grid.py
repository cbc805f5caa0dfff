"""The systematic part of the catalogue: law × activation × structure, and real tables, built from names.

``LAW-ACTIVATION-STRUCTURE`` has the structure's own size; ``LAW-ACTIVATION-STRUCTURE-DxK`` has d = D inputs
and k = K units. ``TABLE-ACTIVATION-K`` plants K units with biases in a real table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, log2

import numpy as np

from onehidden import activations
from onehidden.problems.inputs import LAWS, input_law
from onehidden.problems.problem import (
    Problem,
    TeacherBiases,
    TeacherRows,
    conditioned,
    orthonormal,
    spread,
)
from onehidden.problems.tables import TABLES, RealInputs

REAL_WIDTHS = (3, 5, 10)
_LARGEST = 1000  # inputs or units a name may ask for


@dataclass(frozen=True)
class Structure:
    """How a teacher is built: its size, its rows, whether outputs have both signs, whether it has biases."""

    title: str
    d: int
    k: int
    rows: TeacherRows
    signs: bool = False
    bias: bool = False
    tags: tuple[str, ...] = ()


STRUCTURES = {
    "orthonormal": Structure("orthonormal rows", 8, 8, orthonormal),
    "kappa5": Structure("condition number 5", 8, 8, conditioned(5.0), tags=("not orthogonal",)),
    "narrow": Structure("orthonormal rows, few units", 20, 4, orthonormal, tags=("k < d",)),
    "signs": Structure("random rows, outputs of both signs", 10, 6, spread, signs=True,
                       tags=("k < d", "not orthogonal", "mixed signs")),
    "biased": Structure("random rows with biases, outputs of both signs", 10, 6, spread, signs=True,
                        bias=True, tags=("k < d", "not orthogonal", "mixed signs", "biases")),
}  # fmt: skip


def _hyphened(name: str) -> str:
    return name.replace("_", "-")


_ACTIVATIONS = {_hyphened(name): name for name in activations.names()}
_LAW_NAME = re.compile(
    rf"(?P<law>{'|'.join(LAWS)})-(?P<g>{'|'.join(_ACTIVATIONS)})-(?P<structure>{'|'.join(STRUCTURES)})"
    r"(?:-(?P<d>[1-9]\d*)x(?P<k>[1-9]\d*))?"
)
_TABLE_NAME = re.compile(rf"(?P<table>{'|'.join(TABLES)})-(?P<g>{'|'.join(_ACTIVATIONS)})-(?P<k>[1-9]\d*)")


def grid_names() -> Iterator[str]:
    """The names listed: every law, activation and structure at its own size; ReLU teachers on real tables.

    Polynomial activations hide their units: one structure each, kept for the honest refusal.
    """
    for law in LAWS:
        for hyphened, name in _ACTIVATIONS.items():
            hidden = activations.get(name).polynomial
            for structure in ("signs",) if hidden else STRUCTURES:
                yield f"{law}-{hyphened}-{structure}"
    for table in TABLES:
        for k in REAL_WIDTHS:
            yield f"{table}-relu-{k}"


def from_name(name: str) -> Problem | None:
    """The problem that a systematic name describes; None when it is not one."""
    if found := _LAW_NAME.fullmatch(name):
        size = (int(found["d"]), int(found["k"])) if found["d"] else None
        return _planted(name, found["law"], _ACTIVATIONS[found["g"]], STRUCTURES[found["structure"]], size)
    if found := _TABLE_NAME.fullmatch(name):
        return _on_table(name, TABLES[found["table"]], _ACTIVATIONS[found["g"]], int(found["k"]))
    return None


def _planted(name: str, law: str, g: str, structure: Structure, size: tuple[int, int] | None) -> Problem:
    d, k = size or (structure.d, structure.k)
    if max(d, k) > _LARGEST:
        raise ValueError(f"{name} asks for {d} inputs and {k} units: problems go up to {_LARGEST} of each")
    tags = [t for t in structure.tags if t != "k < d"]
    return Problem(
        name, f"{g}, d = {d}, k = {k}, {structure.title}; {LAWS[law][1]}", input_law(law, d), d, k, g,
        structure.rows,
        2 ** ceil(log2(max(40 * k * d, 1024))),  # about forty samples a parameter
        structure.signs, structure.bias,
        tags=(*(["k < d"] if k < d else []), *tags, *LAWS[law][2], *_of_activation(g)),
    )  # fmt: skip


def _on_table(name: str, table: RealInputs, g: str, k: int) -> Problem:
    few = () if table.n_rows > 10 * k * (table.n_inputs + 1) else ("few samples a parameter",)
    crowded = ("k > d",) if k > table.n_inputs else ()
    return Problem(
        name, f"{g} with biases, k = {k}, on {table.n_rows} rows of {table.n_inputs} columns: {table.title}",
        table, table.n_inputs, k, g, spread, table.n_rows, signs=True, bias=True,
        tags=("real inputs", "biases", "mixed signs", *crowded, *few, *table.tags, *_of_activation(g)),
        biases=cutting(table),
    )  # fmt: skip


def cutting(table: RealInputs) -> TeacherBiases:
    """Biases that put every unit's hyperplane between the 20 and 80 % quantiles of the projected rows."""

    def draw(rng: np.random.Generator, weights: np.ndarray) -> np.ndarray:
        levels = rng.uniform(0.2, 0.8, len(weights))
        return -np.array(
            [np.quantile(table.rows @ a, q) for a, q in zip(weights, levels, strict=True)], dtype=float
        )

    return draw


def _of_activation(g: str) -> tuple[str, ...]:
    return ("not identifiable",) if activations.get(g).polynomial else ()
