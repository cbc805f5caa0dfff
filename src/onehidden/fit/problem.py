"""The problem: which rows, which parameters are free, in which coordinates.

It is what starts and finishes are given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from onehidden.activations import Activation
from onehidden.fit.coordinates import Coordinates
from onehidden.fit.form import Form
from onehidden.fit.input_model import InputModel
from onehidden.fit.rows import A, Rows, Sums
from onehidden.fit.samples import Samples
from onehidden.network import OneHiddenNet


@dataclass(frozen=True, eq=False)
class Problem:
    """A least-squares problem of a network.

    Two coordinate systems belong to it. Searches look at whitened inputs Z, centred (``begin``); there the
    units may need biases even when the answer has none. The finish runs where the free parameters are those
    of the answer (``end``).

    Attributes
    ----------
    rows : the samples, in memory or streamed.
    form : the free parameters of the answer, in the coordinates ``end``.
    around : whitened coordinates of the rows.
    inputs : the law of the inputs, for starts that ask for it.
    basis : (d, r) orthonormal columns of a subspace of Z in which the search looks; None for the whole.
    """

    rows: Rows = field(repr=False)
    form: Form
    around: Coordinates = field(repr=False)
    inputs: InputModel | None = field(default=None, repr=False)
    basis: Float[np.ndarray, "d r"] | None = field(default=None, repr=False)

    def with_width(self, k: int) -> Problem:
        """The same rows, k units."""
        return replace(self, form=replace(self.form, k=k))

    def with_activation(self, activation: Activation) -> Problem:
        """The same rows, other units."""
        return replace(self, form=replace(self.form, activation=activation))

    def with_rows(self, rows: Rows) -> Problem:
        """Other rows, seen in the same coordinates."""
        return replace(self, rows=rows)

    def take(self, index: Int[np.ndarray, " m"]) -> Problem:
        """Some of the rows, seen in the same coordinates."""
        return self.with_rows(self.samples.take(index))

    def halves(self, rng: np.random.Generator) -> tuple[Int[np.ndarray, " m"], Int[np.ndarray, " l"]]:
        """The numbers of the rows of either half."""
        order = rng.permutation(self.n)
        return order[: self.n // 2], order[self.n // 2 :]

    def within(self, basis: Float[np.ndarray, "d r"]) -> Problem:
        """The same problem, its search confined to a subspace of Z."""
        return replace(self, basis=basis if self.basis is None else self.basis @ basis)

    @property
    def samples(self) -> Samples:
        """The rows, which must be in memory: a search looks at them again and again."""
        assert isinstance(self.rows, Samples)
        return self.rows

    @property
    def n(self) -> int:
        return self.rows.n

    @property
    def activation(self) -> Activation:
        return self.form.activation

    @property
    def k(self) -> int:
        return self.form.k

    @property
    def d(self) -> int:
        """Coordinates of Z."""
        return self.around.rank if self.basis is None else self.basis.shape[1]

    @property
    def bias(self) -> bool:
        """Whether units have biases in the search: always, where the rows are not centred at the origin."""
        return self.form.bias or not self._centred

    @cached_property
    def _centred(self) -> bool:
        """Whether the rows are centred at the origin as far as their number tells."""
        offset = self.around.shift @ self.around.whiten
        rank = self.around.rank
        return self.n * float(offset @ offset) <= rank + 5 * np.sqrt(2 * rank)

    @cached_property
    def begin(self) -> Coordinates:
        """Where to search. Without biases the origin of x means something: it is kept where it can be."""
        if self.form.bias or not self._centred:
            return self.around
        return self.around.moved(np.zeros(len(self.around.shift)), self.around.level)

    @cached_property
    def end(self) -> Coordinates:
        """Where to finish."""
        return self.around.finishing(self.form.bias, self.form.intercept)

    @cached_property
    def Z(self) -> Float[np.ndarray, "n d"]:
        """Inputs of the search."""
        Z = self.begin.inputs(self.samples.X)
        return Z if self.basis is None else Z @ self.basis

    @cached_property
    def y(self) -> Float[np.ndarray, " n"]:
        """Target of the search, of mean 0 and variance 1."""
        return self.begin.target(self.samples.y)

    @property
    def weight(self) -> Float[np.ndarray, " n"] | None:
        """How much each row counts, of mean one; None when all count the same."""
        return self.samples.weight

    def weighted(self, columns: np.ndarray) -> np.ndarray:
        """Rows times the root of their weight: least squares on them is weighted least squares."""
        if self.weight is None:
            return columns
        return columns * np.sqrt(self.weight).reshape(-1, *[1] * (columns.ndim - 1))

    @cached_property
    def sums(self) -> Sums:
        """The fit of the answer's form."""
        return self.rows.sums(self.form, self.end)

    def fold(self, make: Callable[[], A]) -> A:
        """An accumulator that has seen all rows where the finish runs."""
        return self.rows.fold(make, self.end)

    def theta(self, network: OneHiddenNet) -> Float[np.ndarray, " p"]:
        """Parameters in the coordinates ``end`` of a network in x."""
        inner = self.end.inward(network)
        return self.form.pack(inner.weights, inner.output, inner.bias, None, inner.intercept)

    def network(self, theta: Float[np.ndarray, " p"]) -> OneHiddenNet:
        """The network in x of parameters in the coordinates ``end``; what is not free stays zero."""
        weights, output, bias, _, constant = self.form.unpack(theta)
        net = self.end.outward(OneHiddenNet(weights, output, bias, float(constant), self.activation))
        # Rounding must not leave a bias or an intercept where none was free.
        return OneHiddenNet(
            net.weights,
            net.output,
            net.bias if self.form.bias else np.zeros(self.form.k),
            net.intercept if self.form.intercept else 0.0,
            net.activation,
        )
