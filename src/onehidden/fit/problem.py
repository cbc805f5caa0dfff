"""The problem: which rows, which parameters are free, in which coordinates, and what y is.

It is what starts and finishes are given. At a network every family of y is a weighted least-squares problem
(``at``): what asks about the neighbourhood of an answer, and every search, is put to that one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from onehidden.activations import Activation
from onehidden.families.family import Family
from onehidden.fit.coordinates import Coordinates
from onehidden.fit.form import Form
from onehidden.fit.input_model import InputModel
from onehidden.fit.rows import A, Rows, Sums
from onehidden.fit.samples import Samples
from onehidden.fit.scoring import ScoringFit, deviances, working_rows
from onehidden.network import OneHiddenNet


@dataclass(frozen=True, eq=False)
class Problem:
    """The fit of a network to rows: least squares, or the deviance of a family.

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
    family : of y, the rows in memory; None for normal noise.
    offset : (n,) what is added to the network's output, with a family; None for nothing.
    trials : (n,) of a binomial, which the weights hold, too.
    """

    rows: Rows = field(repr=False)
    form: Form
    around: Coordinates = field(repr=False)
    inputs: InputModel | None = field(default=None, repr=False)
    basis: Float[np.ndarray, "d r"] | None = field(default=None, repr=False)
    family: Family | None = None
    offset: Float[np.ndarray, " n"] | None = field(default=None, repr=False)
    trials: Float[np.ndarray, " n"] | None = field(default=None, repr=False)

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
        offset, trials = (None if own is None else own[index] for own in (self.offset, self.trials))
        return replace(self, rows=self.samples.take(index), offset=offset, trials=trials)

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
    def numbers(self) -> int:
        """n q, the numbers of all targets."""
        return self.rows.n * self.form.q

    def misfit(self, mean_square: float) -> float:
        """-2 log-likelihood of a fit of this mean square or mean deviance, up to a constant of the rows."""
        if self.family is not None and not self.family.scaled:
            return self.numbers * mean_square
        return self.numbers * float(np.log(max(mean_square, np.finfo(float).tiny)))

    def behind(self, mean_square: float, other: float) -> float:
        """``misfit`` by which another fit falls behind: n log(other / own), or a difference of deviances."""
        return self.misfit(other) - self.misfit(mean_square)

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
        # A shift needs biases, and beside a linear part an intercept, to be taken up by.
        shifted = self.form.bias and (self.form.intercept or not self.form.skip)
        return self.around.finishing(shifted, self.form.intercept)

    @cached_property
    def Z(self) -> Float[np.ndarray, "n d"]:
        """Inputs of the search."""
        Z = self.begin.inputs(self.samples.X)
        return Z if self.basis is None else Z @ self.basis

    @cached_property
    def y(self) -> Float[np.ndarray, "n ..."]:
        """Target of the search, (n,) or (n, q), of mean 0 and variance 1."""
        return self.begin.target(self.samples.y)

    @property
    def weight(self) -> Float[np.ndarray, " n"] | None:
        """(n,) how much each row counts, of mean one; None when all count the same."""
        return self.samples.row_weight

    @property
    def offsets(self) -> Float[np.ndarray, "n ..."]:
        """The offset in the shape of y."""
        y = self.samples.y
        if self.offset is None:
            return np.zeros_like(y)
        return np.broadcast_to(self.offset.reshape(-1, *[1] * (y.ndim - 1)), y.shape)

    def at(self, network: OneHiddenNet) -> Problem:
        """The weighted least-squares problem whose minimum is a step of Fisher scoring from a network, in x.

        At a minimum of the deviance its residuals are Pearson's, its J'J the information, and its noise has
        the variance phi of the family. Normal noise is such a problem already.
        """
        if self.family is None:
            return self
        samples = self.samples
        target, weight = working_rows(
            self.family, samples.y, network.predict(samples.X), self.offsets, samples.weight
        )
        rows = replace(samples, y=target, weight=weight, noisy=True)
        own = rows.row_weight
        assert own is not None
        mean = float(own.mean())
        known = None if self.family.scaled else 1.0
        rows = replace(rows, weight=weight / mean, unit=1 / mean, dispersion=known)
        level = rows.share @ target
        spread = float(np.sqrt(np.mean(rows.share @ (target - level) ** 2)))
        # One scale for all outputs: the information of a row stays in their own units.
        scale = spread if target.ndim == 1 else spread * np.eye(target.shape[1])
        around = replace(self.around, level=float(level) if target.ndim == 1 else level, scale=scale)
        return replace(self, rows=rows, around=around, family=None, offset=None)

    def losses(self, network: OneHiddenNet) -> Float[np.ndarray, " n"]:
        """(n,) what each row adds to the loss of a network, in x."""
        if self.family is not None:
            eta = network.predict(self.samples.X) + self.offsets
            return deviances(self.family, self.samples.y, eta, self.samples.weight)
        # By its predictions: a linear part may not be among the parameters of the form.
        residual = self.end.target(network.predict(self.samples.X)) - self.end.target(self.samples.y)
        weight = 1.0 if self.samples.weight is None else self.samples.weight.reshape(self.n, -1)
        return np.sum(weight * residual.reshape(self.n, -1) ** 2, axis=1)

    def weighted(self, columns: np.ndarray) -> np.ndarray:
        """Rows times the root of their weight: least squares on them is weighted least squares."""
        if self.weight is None:
            return columns
        return columns * np.sqrt(self.weight).reshape(-1, *[1] * (columns.ndim - 1))

    @cached_property
    def sums(self) -> Sums:
        """The fit of the answer's form."""
        if self.family is None:
            return self.rows.sums(self.form, self.end)
        samples, Z = self.samples, self.end.inputs(self.samples.X)
        return ScoringFit(self.form, Z, samples.y, self.family, samples.weight, self.offsets)

    def fold(self, make: Callable[[], A]) -> A:
        """An accumulator that has seen all rows where the finish runs."""
        return self.rows.fold(make, self.end)

    def theta(self, network: OneHiddenNet) -> Float[np.ndarray, " p"]:
        """Parameters in the coordinates ``end`` of a network in x."""
        inner = self.end.inward(network)
        return self.form.pack(inner.weights, inner.output, inner.bias, inner.linear, inner.intercept)

    def network(self, theta: Float[np.ndarray, " p"]) -> OneHiddenNet:
        """The network in x of parameters in the coordinates ``end``; what is not free stays zero."""
        weights, output, bias, beta, constant = self.form.unpack(theta)
        net = self.end.outward(OneHiddenNet(weights, output, bias, constant, self.activation, beta))
        # Rounding must not leave a bias or an intercept where none was free.
        return OneHiddenNet(
            net.weights,
            net.output,
            net.bias if self.form.bias else np.zeros(self.form.k),
            net.intercept if self.form.intercept else 0.0,
            net.activation,
            net.linear,
        )
