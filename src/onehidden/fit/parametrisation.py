"""The squared loss as residuals and their Jacobian: pure functions of (parameters, batch).

All stages use y = c + <beta, x> + sum_i w_i g(<a_i, x> + b_i). The linear skip beta is free in searches
without orientation and with ``linear=True``; b and c may be fixed at zero. With several outputs w_i, beta and
c have one entry an output, and the residuals of a row are adjacent. With a structure the parameters are the
free ones of it, phi, and theta = M phi those of the network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial, wraps
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jaxtyping import Float, Int

from onehidden.activations import Activation, quietly, xp
from onehidden.structure import FreeParameters, Structures

Inputs = Float[np.ndarray, "n d"]
Target = Float[np.ndarray, "n ..."]  # (n,), or (n, q) of several outputs
Weight = Float[np.ndarray, "n ..."] | None
Numbers = Int[np.ndarray, " n"] | None  # that name the rows


@dataclass(frozen=True)
class Parametrisation:
    """Which parameters are free, and with which activation."""

    activation: Activation
    d: int  # inputs
    k: int  # units
    bias: bool = False  # whether b, c and beta are free, else zero
    intercept: bool = True
    skip: bool = False
    symmetrised: bool = False  # use g - h of exact parity in place of g, see ``Activation.symmetrised``
    outputs: int | None = None  # q, for a target (n, q); None for one output and a target (n,)
    structure: Structures | None = None  # what is known of the units

    @cached_property
    def free(self) -> FreeParameters | None:
        """The free parameters; None where those of the network are."""
        if self.structure is None or not self.k:
            return None
        rest = self.q * (self.skip * self.d + self.intercept)
        return self.structure.free(self.k, self.d, self.q, self.bias, rest)

    @property
    def labelled(self) -> bool:
        """Whether the structure tells units apart: their number is fixed, and they keep their order."""
        return self.structure is not None and self.structure.units is not None

    def moves(self, weights: Float[np.ndarray, "k d"]) -> list[np.ndarray]:
        """Weights from which a descent may leave a minimum, see ``Structure.moves``.

        Units with inputs of their own are reversed one by one: no other unit makes up for a wrong side.
        """
        if self.structure is None:
            return []
        own = self.free is not None and self.labelled and self.free.scales == self.k
        each = range(self.k) if own and not self.activation.sign_free else ()
        reversed_units = [np.where(np.arange(self.k)[:, None] == i, -weights, weights) for i in each]
        return [*self.structure.moves(weights), *reversed_units]

    @property
    def plain(self) -> Parametrisation:
        """The parametrisation of the network itself, without a structure."""
        return self if self.structure is None else replace(self, structure=None)

    @property
    def lower(self) -> Float[np.ndarray, " p"] | None:
        """Lower bounds of the parameters; None where there are none."""
        return None if self.free is None else self.free.lower

    @property
    def q(self) -> int:
        """Number of outputs."""
        return 1 if self.outputs is None else self.outputs

    @property
    def tail(self) -> tuple[int, ...]:
        """Trailing shape of parameters that each output has for itself."""
        return () if self.outputs is None else (self.outputs,)

    @property
    def size(self) -> int:
        """Length of the parameter vector."""
        if self.free is not None:
            return self.free.size
        return self.k * (self.d + self.q + self.bias) + self.q * (self.skip * self.d + self.intercept)

    @property
    def freedom(self) -> int:
        """Parameters the function can be said to have: each homogeneous unit has one scale to spare."""
        scales = self.k if self.free is None else self.free.scales
        return self.size - (scales if self.activation.homogeneity is not None else 0)

    @property
    def unit_freedom(self) -> float:
        """The same for one unit, on average."""
        return (self.freedom - replace(self, k=0).freedom) / self.k

    @property
    def inputs(self) -> int:
        """Free weights of a unit, rounded down: none of its own where units share them."""
        return self.d if self.free is None else self.free.sizes[0] // self.k

    @property
    def width(self) -> int:
        """Numbers of a row while its Jacobian is formed."""
        return self.size if self.free is None else self.free.width

    def g(self, t: Any) -> Any:
        """The activation at a NumPy or a JAX array."""
        return self._of(self.activation.symmetrised if self.symmetrised else self.activation.fn, t)

    def slope(self, t: Any) -> Any:
        """Its derivative."""
        return self._of(self.activation.symmetrised_slope if self.symmetrised else self.activation.slope, t)

    def _of(self, fn: Callable[[Any], Any], t: Any) -> Any:
        return self.activation.on_host(fn, t) if isinstance(t, np.ndarray) else fn(t)

    def pack(
        self,
        weights: npt.ArrayLike,
        output: npt.ArrayLike,
        bias: npt.ArrayLike | None = None,
        beta: npt.ArrayLike | None = None,
        intercept: npt.ArrayLike = 0.0,
    ) -> Float[np.ndarray, " p"]:
        """Parameter vector from its parts; parts that are not free are dropped.

        With a structure it is that of the nearest network of this structure.
        """
        parts = [np.asarray(weights, float).ravel(), np.asarray(output, float).ravel()]
        if self.bias:
            parts.append(np.zeros(self.k) if bias is None else np.asarray(bias, float))
        if self.skip:
            parts.append(np.zeros(self.d * self.q) if beta is None else np.asarray(beta, float).ravel())
        if self.intercept:
            parts.append(np.broadcast_to(np.asarray(intercept, float).ravel(), self.q))
        theta = np.concatenate(parts)
        return theta if self.free is None else self.free.inward(theta)

    def unpack(self, theta: Any) -> tuple[Any, Any, Any, Any, Any]:
        """(weights, output, bias, beta, intercept) of a parameter vector."""
        k, d, zeros = self.k, self.d, xp(theta).zeros
        theta = theta if self.free is None else self.free.matrix @ np.asarray(theta)
        shapes = ((k, d), (k, *self.tail), (k,), (d, *self.tail), self.tail)
        weights, output, bias, beta, intercept = (
            zeros(shape, theta.dtype) if place is None else theta[place].reshape(shape)
            for shape, place in zip(shapes, self.places(), strict=True)
        )
        return weights, output, bias, beta, intercept

    def predict(self, theta: Float[np.ndarray, " p"], x: Float[np.ndarray, "n d"]) -> np.ndarray:
        """The network's outputs (n,) or (n, q) on the host."""
        return _predicted(self, np.asarray(theta, float), x)[0]

    def arguments(self, x: Float[np.ndarray, "n d"]) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each unit the derivatives (n, m) of its argument, and the m parameters that they are by."""
        if self.free is not None:
            return self.free.arguments(x)
        index = np.arange(self.k * self.d).reshape(self.k, self.d)
        if (place := self.places()[2]) is None:
            return [(x, own) for own in index]
        inputs = np.column_stack([x, np.ones(len(x))])
        return [(inputs, np.append(own, place.start + i)) for i, own in enumerate(index)]

    def places(self) -> tuple[slice | None, ...]:
        """Where weights, output, bias, beta and intercept stand in theta; None if not free."""
        k, d, q = self.k, self.d, self.q
        sizes = (k * d, k * q, k * self.bias, d * q * self.skip, q * self.intercept)
        ends = np.cumsum(sizes).tolist()
        free = (True, True, self.bias, self.skip, self.intercept)
        return tuple(
            slice(end - size, end) if there else None
            for size, end, there in zip(sizes, ends, free, strict=True)
        )


def roots(weight: np.ndarray | None, n: int) -> np.ndarray:
    """What residuals of n rows are multiplied by: roots of weights (n,), or of one per output (n, q).

    Of information matrices (n, q, q) the transposed Cholesky factors: |L' r|^2 = r' L L' r.
    """
    if weight is None:
        return np.ones(n)
    weight = np.asarray(weight, float)
    if weight.ndim < 3:
        return np.sqrt(weight)
    # The information of a label known for sure is singular but for rounding.
    least = 1e-14 * np.trace(weight, axis1=1, axis2=2)[:, None, None] * np.eye(weight.shape[1])
    return np.linalg.cholesky(weight + least).mT


def weighed(root: Any, values: Any) -> Any:
    """Roots of the weights, as ``roots`` gives them, times values (n,), (n, q) or (n, q, p)."""
    if root.ndim == 3:
        return xp(values).einsum("nab,nb...->na...", root, values)
    return root.reshape(*root.shape, *[1] * (values.ndim - root.ndim)) * values


def _predicted(form: Parametrisation, theta: Any, x: Any) -> tuple[Any, Any, Any]:
    """Predictions (n,) or (n, q), units (n, k) and their arguments."""
    weights, output, bias, beta, intercept = form.unpack(theta)
    t = x @ weights.T + bias
    units = form.g(t)
    prediction = units @ output + intercept
    return prediction + x @ beta if form.skip else prediction, units, t


def _on_either(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs on the host with a theta of NumPy, else as a compiled program."""
    compiled = jax.jit(fn, static_argnums=0)

    @wraps(fn)
    @quietly
    def chosen(form: Parametrisation, theta: Any, x: Any, y: Any, root: Any) -> Any:
        return (fn if isinstance(theta, np.ndarray) else compiled)(form, theta, x, y, root)

    return chosen


@_on_either
def residuals(form: Parametrisation, theta: Any, x: Any, y: Any, root: Any) -> Any:
    """Residuals root * (prediction - y), (n,); of q outputs (n q,), those of a row next to each other."""
    return weighed(root, _predicted(form, theta, x)[0] - y).reshape(-1)


@_on_either
def residuals_and_jacobian(form: Parametrisation, theta: Any, x: Any, y: Any, root: Any) -> tuple[Any, Any]:
    """The residuals and their Jacobian (n q, p), written out: forward-mode AD would form p tangents."""
    n, q, arrays = len(x), form.q, xp(theta)
    prediction, units, t = _predicted(form, theta, x)
    output = form.unpack(theta)[1].reshape(form.k, q)
    # A root acts on the outputs of a row alone: on the slopes, before they meet the inputs.
    each_root = root if root.ndim > 1 else root[:, None] * arrays.ones(q, x.dtype)
    slopes = weighed(each_root, form.slope(t)[:, None, :] * output.T)  # (n, q, k)
    each = weighed(each_root, arrays.broadcast_to(arrays.eye(q, dtype=x.dtype), (n, q, q)))

    def own(columns: Any) -> Any:
        """Columns (n, m) that each output has for itself: (n, q, m q)."""
        return (columns[:, None, :, None] * each[:, :, None, :]).reshape(n, q, -1)

    blocks = [own(units)]
    if form.bias:
        blocks.append(slopes)
    if form.skip:
        blocks.append(own(x))
    if form.intercept:
        blocks.append(each)
    if form.free is not None:
        jacobian = form.free.jacobian(slopes, x, np.concatenate(blocks, axis=2))
    else:
        by_weights = (slopes[..., None] * x[:, None, None, :]).reshape(n, q, -1)
        jacobian = arrays.concatenate([by_weights, *blocks], axis=2)
    return weighed(root, prediction - y).reshape(-1), jacobian.reshape(n * q, -1)


def placed(form: Parametrisation, theta: Float[np.ndarray, " p"], rows: int, on_host: int = 1 << 17) -> Any:
    """Parameters where batches of so many rows are computed: on the host where compiling gains nothing.

    ``on_host`` is the number of entries of a Jacobian up to which NumPy is as fast as a compiled program on
    two cores: 200 x 13 take 80 us for 208, 2000 x 31 284 for 267, 2000 x 111 492 for 518.
    """
    small = rows * form.size * form.q <= on_host and form.activation.either_kind
    if form.free is not None:  # sparse maps are on the host
        return np.asarray(theta, float)
    return np.asarray(theta, float) if small and jax.default_backend() == "cpu" else jnp.asarray(theta)


def evaluated(
    compute: Callable[..., Any],
    form: Parametrisation,
    theta: Float[np.ndarray, " p"],
    x: np.ndarray,
    y: np.ndarray,
    root: np.ndarray,
    on_host: int = 1 << 17,
) -> Any:
    """``residuals`` or ``residuals_and_jacobian`` as NumPy arrays; ``on_host`` as for ``placed``.

    Rows for a compiled program are filled up to a power of two: few shapes, few compilations.
    """
    n, at = len(y), placed(form, theta, len(y), on_host)
    if not isinstance(at, np.ndarray):
        more = (1 << max(8, (n - 1).bit_length())) - n
        x, y, root = (np.pad(v, ((0, more),) + ((0, 0),) * (v.ndim - 1)) for v in (x, y, root))
    return jax.tree.map(lambda one: np.asarray(one)[: n * form.q], compute(form, at, x, y, root))


written_out = partial(evaluated, residuals_and_jacobian)


def pieces(
    compute: Callable[..., Any],
    form: Parametrisation,
    theta: Float[np.ndarray, " p"],
    X: Float[np.ndarray, "n d"],
    y: Float[np.ndarray, " n"],
    weight: Float[np.ndarray, " n"] | None,
    most: int = 8 << 20,
) -> Iterator[Any]:
    """The same piece by piece, the Jacobian of each of at most ``most`` bytes or 256 rows.

    8 MiB stay in the cache.
    """
    root = roots(weight, len(y))
    rows = 1 << max(8, (most // (8 * form.width * form.q)).bit_length() - 1)
    for at in range(0, len(y), rows):
        part = slice(at, at + rows)
        yield evaluated(compute, form, theta, X[part], y[part], root[part])


jacobian_pieces = partial(pieces, residuals_and_jacobian)
