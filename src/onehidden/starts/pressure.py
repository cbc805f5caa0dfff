"""Pressure: units of reflections are kept weak at first, and let go slowly.

Left alone, members of a search by reflections age. Pairs of units of opposite signs that are nearly parallel
grow and cancel each other: of five units in fifty inputs the strongest is 1.4 standard deviations of y after
500 steps and 3.2 after 16 000, where the true ones are .8, and networks found a million steps fall from 71 at
an age of 500 to 2 at 4000. So all of them are born again after a while; and in its life a unit t = Q tau, Q
orthonormal, is drawn towards zero by (1 + p M)^-1 in every step, with a pressure p that falls to zero: the
network sought is one of the weakest that explain the rows, as it is for weight decay in a wide student.

The metric M has one of two forms. With the strength, the mean of t^2, nothing is known of the units. With the
weights in standardised columns, units along directions in which a table hardly varies cost most; the same
where columns are uncorrelated. Wine with five units, 97 rows for 84 parameters, three teachers of 64 members,
16 000 steps: 18 networks with the first, 42 with the second, two without pressure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from onehidden.fit.form import Form
from onehidden.fit.problem import Problem

# Pressure at birth, and share of a life after which there is none. Networks of d = k = 8 with biases, 104
# rows, found in 64 lives of 16 000 steps (two teachers): 13 from .1, 20 from .05, 23 from .03. Wine with five
# units, three teachers: 42 from .03, 22 from .01, 8 from .003. The share was not varied.
_FIRST, _PRESSED = 0.05, 0.8
# Steps of the first life and of the longest: each is twice as long as the one before. Of five units in fifty
# inputs a quarter of the members come to the answer in 2000 steps, of wine with ten units one in forty in
# 32 000.
_SHORTEST, _LONGEST = 2000, 32_000


class Metric(NamedTuple):
    """A quadratic form of the coordinates of a unit: its eigenvalues (e,) and eigenvectors (e, e)."""

    scales: Float[np.ndarray, " e"]
    axes: Float[np.ndarray, "e e"]

    def kept(self, pressure: float) -> Float[np.ndarray, "e e"]:
        """(1 + pressure M)^-1."""
        return (self.axes / (1 + pressure * self.scales)) @ self.axes.T


def of_strength(size: int) -> Metric:
    """The mean of t^2."""
    return Metric(np.ones(size), np.eye(size))


def of_weights(problem: Problem, form: Form, back: Float[np.ndarray, "e e"]) -> Metric:
    """The squares of a unit's weights in columns of variance one, and of its bias.

    ``back`` leads from orthonormal coordinates, of length sqrt(n) for a unit of variance one, to hyperplanes.
    """
    basis = np.eye(form.d) if problem.basis is None else problem.basis
    whiten, unwhiten = problem.begin.whiten, problem.begin.unwhiten
    columns = np.linalg.norm(unwhiten, axis=0)[:, None] * (whiten @ basis)
    weights = np.vstack([columns @ back[: form.d], back[form.d :]])
    return Metric(*np.linalg.eigh(problem.n * weights.T @ weights))


def lives(steps: int) -> Iterator[int]:
    """Lengths of the lives that so many steps are divided into; a short rest prolongs the last."""
    life = _SHORTEST
    while steps > 0:
        own = life if steps - life >= _SHORTEST else steps
        yield own
        steps, life = steps - own, min(2 * life, _LONGEST)


def pressure(age: int, life: int) -> float:
    """At an age."""
    return _FIRST * max(0.0, 1 - age / (_PRESSED * life))
