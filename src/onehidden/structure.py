"""Structure: units known to be of a kind, as a linear map from free parameters to those of a network.

The parameters theta = (weights, outputs, biases, linear part, intercept) of a network are M phi, and some phi
are at least 0. The Jacobian in phi is J M, J that in theta, so that identifiability, degrees of freedom and
errors are those of phi. Structures are said in the inputs x. Fits run in inputs that are shifted, and scaled
by one number or, where each weight is free or zero by itself, by one number a column: M stays what it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Bool, Float, Int
from scipy import sparse
from scipy.sparse.linalg import splu

from onehidden.run import fingerprint

__all__ = ["Basis", "NonNegative", "Shifts", "Sparse", "Zeros"]
SparseArray = Any  # a sparse array, of which SciPy's annotations know neither the format nor the shape


@dataclass(frozen=True, eq=False)
class FreeParameters:
    """The map M of the weights, outputs and biases of k units of d inputs, block by block, and the bounds.

    Free parameters have the order of the blocks; a linear part and the intercept are free as they are.
    """

    shape: tuple[int, int, int]  # k, d, outputs
    weights: SparseArray  # (k d, a)
    output: SparseArray  # (k q, b)
    bias: SparseArray  # (k, c)
    rest: int = 0  # length of linear part and intercept
    bounded: Bool[np.ndarray, " p"] | None = None  # which phi are at least 0
    scales: int = 0  # how many scales can be traded between weights and outputs, where g is homogeneous

    @property
    def sizes(self) -> tuple[int, ...]:
        """Free parameters of each block."""
        return (self.weights.shape[1], self.output.shape[1], self.bias.shape[1], self.rest)

    @property
    def size(self) -> int:
        """Number of free parameters."""
        return sum(self.sizes)

    @cached_property
    def matrix(self) -> SparseArray:
        """(P, p) M itself."""
        bias = [self.bias] if self.bias.shape[1] else []
        return sparse.block_diag([self.weights, self.output, *bias, sparse.eye_array(self.rest)], "csr")

    @property
    def lower(self) -> Float[np.ndarray, " p"] | None:
        """(p,) lower bounds; None where there are none."""
        return None if self.bounded is None else np.where(self.bounded, 0.0, -np.inf)

    def inward(self, theta: Float[np.ndarray, " P"]) -> Float[np.ndarray, " p"]:
        """The free parameters whose network is nearest to that of theta, moved into their bounds."""
        return self.within(self._solver.solve(self.matrix.T @ theta))

    def within(self, phi: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
        """The free parameters moved into their bounds, on which they are where they differ by rounding."""
        if self.bounded is None:
            return phi
        rounding = 100 * np.finfo(float).eps * np.max(np.abs(phi), initial=0.0)
        return np.where(self.bounded & (phi <= rounding), 0.0, phi)

    def drawn(self, rng: np.random.Generator) -> tuple[Float[np.ndarray, "k d"], Float[np.ndarray, " k"]]:
        """Random weights, of a mean square length of one, and biases."""
        count = self.sizes[0]
        weights = self.weights @ self.within(rng.standard_normal(self.size))[:count]
        weights = weights.reshape(self.shape[:2]) * np.sqrt(
            self.shape[0] / max(weights @ weights, np.finfo(float).tiny)
        )
        return weights, 0.5 * self.bias @ rng.standard_normal(self.sizes[2])

    @cached_property
    def _solver(self) -> Any:
        return splu((self.matrix.T @ self.matrix).tocsc())

    def at_bound(self, phi: Float[np.ndarray, " p"]) -> Bool[np.ndarray, " p"]:
        """Which free parameters are at their bounds."""
        return np.zeros(len(phi), bool) if self.bounded is None else self.bounded & (phi <= 0)

    def without(self, fixed: Bool[np.ndarray, " p"]) -> FreeParameters:
        """The map without these free parameters, which are zero."""
        a, b, c, _ = np.split(~fixed, np.cumsum(self.sizes)[:-1])
        bounded = None if self.bounded is None else self.bounded[~fixed]
        return replace(
            self, weights=self.weights[:, a], output=self.output[:, b], bias=self.bias[:, c], bounded=bounded
        )

    def shared(self, weights: SparseArray) -> FreeParameters:
        """The map where all units have these weights' parameters and one bias in common."""
        bias = sparse.csc_array(np.ones((self.shape[0], int(self.bias.shape[1] > 0))))
        return replace(self, weights=weights, bias=bias, scales=1)

    @cached_property
    def _pairs(self) -> tuple[SparseArray, Int[np.ndarray, " m"], Int[np.ndarray, " m"]]:
        """Pairs of a free parameter and a unit that has it: the direction (d, m), the unit, the parameter."""
        entry, (k, d, _) = self.weights.tocoo(), self.shape
        pairs, place = np.unique(entry.col.astype(int) * k + entry.row // d, return_inverse=True)
        directions = sparse.csc_array((entry.data, (entry.row % d, place)), (d, len(pairs)))
        return directions, pairs % k, pairs // k

    @property
    def width(self) -> int:
        """Numbers of a row while its Jacobian is formed."""
        return max(self.size, len(self._pairs[1]))

    def arguments(self, x: Float[np.ndarray, "n d"]) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each unit the derivatives of its argument, and the free parameters that they are by."""
        directions, unit, column = self._pairs
        inputs, first = x @ directions, sum(self.sizes[:2])
        found = []
        for i in range(self.shape[0]):
            bias = self.bias[[i]].tocoo()
            columns = np.ones((len(x), 1)) * bias.data
            found.append(
                (np.hstack([inputs[:, unit == i], columns]), np.append(column[unit == i], first + bias.col))
            )
        return found

    def jacobian(
        self,
        slopes: Float[np.ndarray, "n q k"],
        x: Float[np.ndarray, "n d"],
        rest: Float[np.ndarray, "n q R"],
    ) -> Float[np.ndarray, "n q p"]:
        """J M from the derivatives by the arguments of the units, and by all parameters but the weights."""
        directions, unit, column = self._pairs
        n, q, count = len(x), slopes.shape[1], self.weights.shape[1]
        inputs = directions.T @ x.T  # (m, n): rows of sparse products are contiguous
        first = np.searchsorted(column, np.arange(count))
        each = np.ascontiguousarray(slopes.transpose(1, 2, 0))
        weights = [np.add.reduceat(own[unit] * inputs, first, axis=0).T for own in each]
        others = rest.reshape(n * q, -1) @ self.matrix[self.weights.shape[0] :, count:]
        return np.concatenate([np.stack(weights, axis=1), others.reshape(n, q, -1)], axis=2)


class Structure:
    """What is known of the units beforehand."""

    by_column = True  # whether it stays what it is where each input is measured in units of its own

    @property
    def units(self) -> int | None:
        """The number of units, where they differ in what is known of them: they then keep their order."""
        return None

    def restrict(self, free: FreeParameters) -> FreeParameters:
        """Return these free parameters restricted."""
        raise NotImplementedError

    def moves(self, weights: Float[np.ndarray, "k d"]) -> list[Float[np.ndarray, "k d"]]:
        """Weights from which a descent may leave the minimum that these are at; none by default."""
        return []


@dataclass(frozen=True, eq=False)
class NonNegative(Structure):
    """Weights, or outputs, that are at least zero; of weights in a basis their coefficients.

    Parameters
    ----------
    inputs : bool
        Whether the weights of all inputs are.
    outputs : bool
        Whether the outputs of the units are.

    Examples
    --------
    >>> import numpy as np
    >>> import onehidden as oh
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = np.tanh(X @ [1.0, 0.0, 0.5])
    >>> known = oh.structure.NonNegative(outputs=True)
    >>> found = oh.recover(X, y, hidden=1, activation="tanh", structure=known)
    >>> bool(found.network.weights.min() >= 0)
    True
    """

    inputs: bool = True
    outputs: bool = False

    def __post_init__(self) -> None:
        if not (self.inputs or self.outputs):
            raise ValueError("NonNegative bounds inputs, outputs or both: neither was asked for")

    def restrict(self, free: FreeParameters) -> FreeParameters:
        kinds = (self.inputs, self.outputs, False, False)
        return replace(free, bounded=np.repeat(kinds, free.sizes))


@dataclass(frozen=True, eq=False)
class Basis(Structure):
    """Weights that are combinations of known vectors: smooth, local, tied to each other.

    Parameters
    ----------
    matrix : array_like of shape (d, m) or (k, d, m)
        The vectors as columns: the weights of a unit are ``matrix @ phi``. One matrix for all units, or one a
        unit.
    shared : bool
        Whether all units have the same coefficients phi, and one bias.

    Examples
    --------
    >>> import numpy as np
    >>> import onehidden as oh
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> y = np.abs(X @ [1.0, 1.0, 2.0, 2.0])
    >>> pairs = np.repeat(np.eye(2), 2, axis=0)  # two inputs each have one weight
    >>> found = oh.recover(X, y, hidden=1, activation="abs", bias=False, structure=oh.structure.Basis(pairs))
    >>> print(found.freedom)
    3
    """

    by_column = False
    matrix: npt.ArrayLike = field(repr=False)
    shared: bool = False

    def __post_init__(self) -> None:
        matrix = np.asarray(self.matrix, float)
        if matrix.ndim not in (2, 3) or not matrix.size or not np.all(np.isfinite(matrix)):
            raise ValueError(
                "the matrix of a basis must be finite numbers of shape (inputs, vectors) or (units, inputs, "
                f"vectors), got shape {matrix.shape}"
            )
        object.__setattr__(self, "matrix", matrix)
        each = [matrix.reshape(-1, matrix.shape[-1])] if self.shared or matrix.ndim == 2 else matrix
        if any(np.linalg.matrix_rank(one) < matrix.shape[-1] for one in each):
            raise ValueError("the columns of the matrix of a basis must be linearly independent")

    @property
    def units(self) -> int | None:
        return len(np.asarray(self.matrix)) if np.ndim(self.matrix) == 3 else None

    def restrict(self, free: FreeParameters) -> FreeParameters:
        (k, d, _), matrix = free.shape, np.asarray(self.matrix)
        if matrix.shape[-2] != d:
            raise ValueError(
                f"the matrix of the basis is for {matrix.shape[-2]} inputs, but X has {d} columns"
            )
        each = [sparse.csc_array(one) for one in (matrix if matrix.ndim == 3 else [matrix] * k)]
        if self.shared:
            return free.shared(sparse.vstack(each, "csc"))
        return replace(free, weights=sparse.block_diag(each, "csc"))


@dataclass(frozen=True, eq=False)
class Zeros(Structure):
    """Weights that are zero, unit by unit.

    Parameters
    ----------
    zero : array_like of bool, shape (d,) or (k, d)
        Whether a weight is zero.

    Examples
    --------
    >>> import numpy as np
    >>> import onehidden as oh
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> y = np.abs(X[:, 0]) + np.abs(X[:, 1] - X[:, 2])
    >>> known = oh.structure.Zeros([[False, True, True], [True, False, False]])
    >>> found = oh.recover(X, y, activation="abs", bias=False, structure=known)
    >>> print(found.freedom)
    4
    """

    zero: npt.ArrayLike = field(repr=False)

    def __post_init__(self) -> None:
        zero = np.asarray(self.zero)
        if zero.ndim not in (1, 2) or zero.dtype != bool:
            raise ValueError(
                f"zeros are True or False of shape (inputs,) or (units, inputs), got {zero.dtype} of "
                f"shape {zero.shape}"
            )
        if np.any(np.all(zero, axis=-1)):
            raise ValueError("a unit whose weights are all zero is no unit: leave some of its inputs free")
        object.__setattr__(self, "zero", zero)

    @property
    def units(self) -> int | None:
        return len(np.asarray(self.zero)) if np.ndim(self.zero) == 2 else None

    def restrict(self, free: FreeParameters) -> FreeParameters:
        (k, d, _), zero = free.shape, np.asarray(self.zero)
        if zero.shape[-1] != d:
            raise ValueError(f"zeros are said of {zero.shape[-1]} inputs, but X has {d} columns")
        return replace(free, weights=free.weights[:, ~np.broadcast_to(zero, (k, d)).ravel()])


@dataclass(frozen=True, eq=False)
class Sparse(Structure):
    """Units of few inputs each; which ones is chosen by ``recover``, on half of the rows.

    The other rows are fitted: checks, errors and intervals are theirs, as if the inputs had been known.

    Parameters
    ----------
    groups : array_like of shape (d,), optional
        Labels of the inputs: those of one label, as the columns of one category, come and go together.

    Examples
    --------
    >>> import numpy as np
    >>> import onehidden as oh
    >>> X = np.random.default_rng(0).normal(size=(400, 20))
    >>> y = np.tanh(X[:, 3] - 2 * X[:, 7]) + 0.1 * np.random.default_rng(1).normal(size=400)
    >>> found = oh.recover(X, y, hidden=1, activation="tanh", structure="sparse")
    >>> print(np.flatnonzero(found.network.weights[0]), found.n_samples)
    [3 7] 200
    """

    groups: npt.ArrayLike | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.groups is not None and np.ndim(self.groups) != 1:
            raise ValueError(f"groups are one label an input, got shape {np.shape(self.groups)}")

    def numbers(self, d: int) -> Int[np.ndarray, " d"]:
        """The number of the group of each of d inputs."""
        if self.groups is None:
            return np.arange(d)
        if np.size(self.groups) != d:
            raise ValueError(f"groups are of {np.size(self.groups)} inputs, but X has {d} columns")
        return np.unique(np.asarray(self.groups), return_inverse=True)[1]

    def restrict(self, free: FreeParameters) -> FreeParameters:
        self.numbers(free.shape[1])
        return free


@dataclass(frozen=True, eq=False)
class Shifts(Structure):
    """One filter at every place of a line or a picture, as in a convolutional layer; one unit a place.

    Units have the filter and one bias in common, and outputs of their own. They stand in the order of the
    places, the last axis fastest.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the line or picture whose values, the last axis fastest, are the columns of X.
    filter : int or tuple of int
        Shape of the filter.
    common_output : bool
        Whether the outputs are one number, too: the units are added up.

    Examples
    --------
    >>> import numpy as np
    >>> import onehidden as oh
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> y = np.abs(X[:, 1:] - X[:, :-1]) @ [1.0, 2.0, -1.0, 0.5]
    >>> known = oh.structure.Shifts(5, 2)
    >>> found = oh.recover(X, y, activation="abs", bias=False, structure=known)
    >>> known.filter_of(found.network.weights).round(3)
    array([-0.707,  0.707])
    """

    by_column = False
    shape: int | Sequence[int]
    filter: int | Sequence[int]
    common_output: bool = False

    def __post_init__(self) -> None:
        for name in ("shape", "filter"):
            value = tuple(int(one) for one in np.atleast_1d(getattr(self, name)))
            object.__setattr__(self, name, value)
        if len(self._sizes[0]) != len(self._sizes[1]) or min(*self._sizes[0], *self._sizes[1]) < 1:
            raise ValueError(
                f"a filter of shape {self.filter} does not fit into one of {self.shape}: name as many sizes"
            )
        if min(self.places) < 1:
            raise ValueError(f"the filter, {self.filter}, is larger than the picture, {self.shape}")

    @property
    def _sizes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return tuple(self.shape), tuple(self.filter)  # pyright: ignore[reportArgumentType]

    @property
    def places(self) -> tuple[int, ...]:
        """Number of places along each axis."""
        return tuple(int(a - b + 1) for a, b in zip(*self._sizes, strict=True))

    @property
    def units(self) -> int:
        return int(np.prod(self.places))

    @cached_property
    def pixels(self) -> Int[np.ndarray, "k m"]:
        """The input that each entry of the filter meets at each place."""
        numbers = np.arange(np.prod(self._sizes[0])).reshape(self._sizes[0])
        windows = np.lib.stride_tricks.sliding_window_view(numbers, self._sizes[1])
        return windows.reshape(self.units, -1)

    def filter_of(self, weights: Float[np.ndarray, "k d"]) -> np.ndarray:
        """The filter, in its own shape, of weights (k, d) of a network."""
        return np.asarray(weights)[0, self.pixels[0]].reshape(self._sizes[1])

    def moves(self, weights: Float[np.ndarray, "k d"]) -> list[Float[np.ndarray, "k d"]]:
        """The filter moved by one place along each axis: minima have part of it in another place."""
        found, own = [], self.filter_of(weights)
        for axis in range(own.ndim):
            for way in (1, -1):
                moved = np.roll(own, way, axis)
                moved[(slice(None),) * axis + (0 if way > 0 else -1,)] = 0.0
                place = np.arange(len(weights))[:, None], self.pixels
                found.append(np.zeros_like(weights))
                found[-1][place] = moved.ravel()
        return found

    def restrict(self, free: FreeParameters) -> FreeParameters:
        (k, d, _), inputs = free.shape, int(np.prod(self._sizes[0]))
        if inputs != d:
            raise ValueError(f"a picture of shape {self.shape} has {inputs} values, but X has {d} columns")
        (k, m), entries = self.pixels.shape, self.pixels + d * np.arange(k)[:, None]
        at = entries.ravel(), np.tile(np.arange(m), k)
        if self.common_output:
            free = replace(free, output=sparse.csc_array(np.tile(np.eye(free.shape[2]), (k, 1))))
        return free.shared(sparse.csc_array((np.ones(k * m), at), (k * d, m)))


@dataclass(frozen=True, eq=False)
class Structures:
    """Several structures at once, in the order in which they restrict the parameters.

    Free parameters that are ``given``, those of other structures without the ones at their bounds, stay so.
    """

    parts: tuple[Structure, ...]
    given: FreeParameters | None = None

    @property
    def to_choose(self) -> Sparse | None:
        """What says that the inputs of units are to be chosen."""
        return next((part for part in self.parts if isinstance(part, Sparse)), None)

    @property
    def by_column(self) -> bool:
        """Whether all parts are."""
        return all(part.by_column for part in self.parts)

    @property
    def units(self) -> int | None:
        """The number of units where a part has one."""
        return next((part.units for part in self.parts if part.units is not None), None)

    def moves(self, weights: Float[np.ndarray, "k d"]) -> list[Float[np.ndarray, "k d"]]:
        """The moves of all parts."""
        return [moved for part in self.parts for moved in part.moves(weights)]

    @property
    def name(self) -> str:
        """Its name, or what it is made of."""
        names = [name for name, make in NAMES.items() if repr((make(),)) == repr(self.parts)]
        return names[0] if names else ", ".join(map(repr, self.parts))

    def digest(self, d: int) -> str:
        """A text by which two structures of d inputs differ."""
        free = self.free(self.units or 1, d, 1, True, 1)
        return fingerprint(free.matrix.indptr, free.matrix.indices, free.matrix.data, free.bounded)

    def free(self, k: int, d: int, q: int, bias: bool, rest: int) -> FreeParameters:
        """The free parameters of k units."""
        if self.given is not None:
            return self.given
        if self.units not in (None, k):
            raise ValueError(f"the structure has {self.units} units, but hidden={k} were asked for")
        eye: list[SparseArray] = [sparse.eye_array(size, format="csc") for size in (k * d, k * q, k)]
        free = FreeParameters((k, d, q), eye[0], eye[1], eye[2][:, : k * bias], rest, scales=k)
        for part in self.parts:
            free = part.restrict(free)
        return free


NAMES = {"nonnegative": NonNegative, "sparse": Sparse}


def read(structure: Any) -> Structures | None:
    """One structure, a name, or a list of them; bounds restrict what is left by the one other structure."""
    if structure is None or isinstance(structure, Structures):
        return structure
    several = structure if isinstance(structure, list | tuple) else [structure]
    found = [NAMES[one]() if isinstance(one, str) and one in NAMES else one for one in several]
    if not found or not all(isinstance(one, Structure) for one in found):
        raise ValueError(
            f"structure must be one of oh.structure, a list of them or one of {', '.join(NAMES)}, got "
            f"{structure!r}"
        )
    bounds = [one for one in found if isinstance(one, NonNegative)]
    maps = [one for one in found if isinstance(one, Structure) and one not in bounds]
    if len(maps) > 1 or len(bounds) > 1:
        raise ValueError(
            "NonNegative can be combined with one other structure: write several maps as one Basis, and say "
            "inputs and outputs in one NonNegative"
        )
    return Structures((*maps, *bounds))
