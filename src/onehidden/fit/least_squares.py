"""The loss of a network over samples, and J'J, J'r and r'r as mergeable sums over batches.

The loss is that of squared residuals, or the deviance of a family. At any parameters a family makes the rows
a weighted least-squares problem, with a working target and the information of each row as its weight: its J'J
is the Fisher information, its J'r half the gradient of the deviance. Levenberg–Marquardt on these normal
equations, with the deviance as the loss, is Fisher scoring.

J'J needs no J. With x~ = (x, 1) and s~ = (slopes, 1) a column of the Jacobian of output o is a product
w_io s~_i x~_a, or a unit u_j, or x~_a. A block of J'J, (W W')_ij sum_n s~_i s~_j x~_a x~_b, is symmetric in
(i, j) and in (a, b): all of them are the product of a table of (k+1)(k+2)/2 pairs with one of (d+1)(d+2)/2, a
quarter of the work of J'J written out, and the same whatever the number of outputs. A homogeneous unit of
degree m is u_i = s_i <a~_i, x~> / m (Euler), a~ = (a, b): its sums with the others follow from the same
product.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from onehidden.activations import quietly
from onehidden.families.family import Family
from onehidden.fit.parametrisation import (
    Inputs,
    Numbers,
    Parametrisation,
    Target,
    Weight,
    jacobian_pieces,
    placed,
    residuals,
    residuals_and_jacobian,
    roots,
    written_out,
)
from onehidden.machine import in_double


class InMemoryLeastSquares:
    """Residuals of a form over samples (x, y, weight), as sums over batches of one shape.

    The last batch is filled up with rows of weight zero, so that one compiled function serves all. ``batch``
    is the number of bytes of one batch's Jacobian. On a CPU it should stay in the cache: J'J of 100 000 x 10
    with 4 units takes 27 ms with 8 MiB and 44 ms with 64.
    """

    @in_double
    def __init__(
        self,
        form: Parametrisation,
        X: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray | None = None,
        batch: int | None = None,
    ) -> None:
        n, self.form = len(X), form
        self._on_cpu = jax.default_backend() == "cpu"
        batch = batch or ((8 if self._on_cpu else 64) << 20)
        rows = max(256, batch // (8 * form.size * form.q))
        count = max(1, -(-n // rows))
        rows = -(-n // count)
        padded = count * rows - n
        root = roots(weight, n)
        x, target, root = (np.pad(v, ((0, padded),) + ((0, 0),) * (v.ndim - 1)) for v in (X, y, root))
        self.n, self._height = n, rows
        keep = np.asarray if isinstance(placed(form, np.zeros(form.size), rows), np.ndarray) else jnp.asarray
        self._batches = [
            tuple(keep(v[i : i + rows]) for v in (x, target, root)) for i in range(0, len(x), rows)
        ]
        self._given, self._root = (X, y, weight), root[:n]
        alike = weight is None or weight.ndim == 1  # for every output
        self._by_pairs = self._on_cpu and alike and by_pairs(form)

    @in_double
    def residuals(self, theta: np.ndarray) -> np.ndarray:
        """(n,) weighted residuals, prediction minus y; of q outputs (n q,)."""
        return np.concatenate(list(self._batchwise(theta)))[: self.n * self.form.q]

    @quietly
    @in_double
    def loss(self, theta: np.ndarray) -> float:
        """Sum of squared residuals."""
        return float(sum(float(r @ r) for r in self._batchwise(theta)))

    @in_double
    def normal_equations(
        self, theta: np.ndarray, rough: bool = False
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """J'J, J'r and r'r; J is never held for more than one batch, and where that pays not at all."""
        if not self._on_cpu:
            batches = tuple(jnp.stack(part) for part in zip(*self._batches, strict=True))
            hessian, gradient, loss = _on_device(self.form, jnp.asarray(theta), batches)
            return np.asarray(hessian), np.asarray(gradient), float(loss)
        return NormalEquations(self.form, theta, rough, self._by_pairs).update(*self._given).result()

    @in_double
    def gradient(self, theta: np.ndarray) -> tuple[np.ndarray, float] | None:
        """J'r and r'r; None where J'J costs little more."""
        if not self._by_pairs:
            return None
        return NormalEquations(self.form, theta, bare=True).update(*self._given).gradient()

    @in_double
    def jacobian(self, theta: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
        """(m, p) the weighted Jacobian of some rows; of q outputs (m q, p)."""
        X, y, _ = self._given
        return written_out(self.form, theta, X[rows], y[rows], self._root[rows])[1]

    @in_double
    def triangle(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R (p, p) and Q'r (p,) of J = QR."""
        return Triangle(self.form, theta).update(*self._given).result()

    def _batchwise(self, theta: np.ndarray) -> Iterator[np.ndarray]:
        at = placed(self.form, theta, self._height)
        return (np.asarray(residuals(self.form, at, *batch)) for batch in self._batches)


@partial(jax.jit, static_argnums=0)
def _on_device(
    form: Parametrisation, theta: jax.Array, batches: tuple[jax.Array, ...]
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """J'J, J'r and r'r of all batches (c, m, …) in one program: nothing waits for the host between them."""

    def one(total: tuple[jax.Array, ...], batch: tuple[jax.Array, ...]):
        r, J = residuals_and_jacobian(form, theta, *batch)
        return (total[0] + J.T @ J, total[1] + J.T @ r, total[2] + r @ r), None

    nothing = jnp.zeros((form.size, form.size)), jnp.zeros(form.size), jnp.zeros(())
    return jax.lax.scan(one, nothing, batches)[0]


class FisherScoring:
    """The deviance of a form over rows, and a step of Fisher scoring at any parameters.

    ``weight`` (n,) holds the trials of a binomial, too; ``offset`` is added to the network's output.
    """

    def __init__(
        self,
        form: Parametrisation,
        X: Float[np.ndarray, "n d"],
        y: Target,
        family: Family,
        weight: Float[np.ndarray, " n"] | None = None,
        offset: Target | None = None,
    ) -> None:
        self.form, self.n = form, len(X)
        self._X, self._y, self._family, self._weight = X, y, family, weight
        self._offset = np.zeros_like(y) if offset is None else offset
        self._plain = InMemoryLeastSquares(form, X, np.zeros_like(y))

    def output(self, theta: np.ndarray) -> Target:
        """The network's output at every row, without the offset."""
        return self._plain.residuals(theta).reshape(self._y.shape)

    def loss(self, theta: np.ndarray) -> float:
        """The deviance."""
        with np.errstate(over="ignore", invalid="ignore"):
            eta = self.output(theta) + self._offset
            return float(np.sum(deviances(self._family, self._y, eta, self._weight)))

    def normal_equations(
        self, theta: np.ndarray, rough: bool = False
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """The information, half the gradient of the deviance, and the deviance."""
        target, weight = self._working(theta)
        sums = NormalEquations(self.form, theta, rough, False if weight.ndim > 1 else None)
        hessian, gradient, _ = sums.update(self._X, target, weight).result()
        return hessian, gradient, self.loss(theta)

    def triangle(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """R and Q'r of the Jacobian times the roots of the information."""
        target, weight = self._working(theta)
        return Triangle(self.form, theta).update(self._X, target, weight).result()

    def _working(self, theta: np.ndarray) -> tuple[Target, np.ndarray]:
        output = self.output(theta)
        return working_rows(self._family, self._y, output, self._offset, self._weight)


def deviances(
    family: Family, y: Target, eta: Target, weight: Float[np.ndarray, " n"] | None
) -> Float[np.ndarray, " n"]:
    """(n,) unit deviances times the weights of their rows, added up over outputs."""
    found = family.deviance(y, eta)
    found = found if found.ndim == 1 else found.sum(axis=1)
    return found if weight is None else weight * found


def working_rows(
    family: Family, y: Target, output: Target, offset: Target, weight: Float[np.ndarray, " n"] | None
) -> tuple[Target, Float[np.ndarray, "n ..."]]:
    """The target and the weights, (n,), (n, q) or (n, q, q), of a step of Fisher scoring at this output."""
    residual, information = family.working(y, output + offset)
    if weight is not None:
        information = information * weight.reshape(-1, *[1] * (information.ndim - 1))
    return output - residual, information


def by_pairs(form: Parametrisation, write: float = 60.0) -> bool:
    """Whether the tables of pairs are cheaper than the Jacobian written out and multiplied by itself.

    Writing an entry of a table takes the time of ``write`` multiply-adds of a matrix product. Below 400
    parameters one compiled Jacobian beats many small products.
    """
    left, right = (m * (m + 1) // 2 for m in (form.k + 1, form.d + 1))
    cheaper = 2 * left * right + write * (left + right) < form.q * (form.size**2 + write * form.size)
    return form.size >= 400 and cheaper


class NormalEquations:
    """Accumulator of J'J (p, p), J'r (p,) and r'r at one theta; ``update(X, y, weight)`` adds a batch.

    ``rough`` forms J'J in single precision, block by block; sums of blocks and everything else are in double.
    ``pairs`` says whether J'J comes from tables of pairs, by default where that is cheaper; weights that
    differ from output to output need the Jacobian written out. ``bare`` leaves J'J out of the tables: only
    ``gradient`` can be called then. ``table`` bounds the bytes of the largest table: 1326 pairs of either
    kind over 16 384 rows take .95 s in blocks of 411 rows, .78 of 1024, .75 of 2048, .79 of 4096.
    """

    def __init__(
        self,
        form: Parametrisation,
        theta: np.ndarray,
        rough: bool = False,
        pairs: bool | None = None,
        bare: bool = False,
        table: int = 11 << 20,
    ) -> None:
        self.form, self.theta, self.rough = form, np.asarray(theta, float), rough
        self.bare, self.table = bare, table
        self.pairs = by_pairs(form) if pairs is None else pairs
        self._loss = 0.0
        if self.pairs:
            left, right = (m * (m + 1) // 2 for m in (form.k + 1, form.d + 1))
            self._pairs = np.zeros((0, 0) if bare else (left, right))
            self._units = np.zeros((form.k, form.k + 1, form.d + 1))  # sum of u_i s~_j x~_a
            self._gram = np.zeros((form.k, form.k))  # sum of u_i u_j
            self._towards = np.zeros((form.k, form.d + 1))  # sum of <w_i, r> s_i x~_a
            self._rest = np.zeros((form.d + 1, form.q))  # sum of x~_a r_o
            self._output = np.zeros((form.k, form.q))
        else:
            self._hessian, self._gradient = np.zeros((form.size, form.size)), np.zeros(form.size)

    @in_double
    def update(self, X: Inputs, y: Target, weight: Weight = None, row: Numbers = None) -> NormalEquations:
        """Add rows X (n, d), targets y (n,) or (n, q) and weights (n,), one each when None."""
        if self.pairs:
            self._update_by_pairs(np.ascontiguousarray(X.T), y, roots(weight, len(y)))
            return self
        for r, J in jacobian_pieces(self.form, self.theta, X, y, weight):
            # NumPy turns J.T @ J into a symmetric rank-k product, half the work of XLA's on the CPU.
            self._hessian += J.T @ J
            self._gradient += J.T @ r
            self._loss += float(r @ r)
        return self

    def merge(self, other: NormalEquations) -> NormalEquations:
        if self.form != other.form or not np.array_equal(self.theta, other.theta):
            raise ValueError("only normal equations of one form at one theta merge")
        for name, value in vars(other).items():
            if name not in ("form", "theta", "rough", "bare", "pairs", "table"):
                setattr(self, name, getattr(self, name) + value)
        return self

    def result(self) -> tuple[np.ndarray, np.ndarray, float]:
        """J'J, J'r and r'r."""
        if not self.pairs:
            return self._hessian, self._gradient, self._loss
        form, (k, d) = self.form, (self.form.k, self.form.d)
        weights, output, bias, _, _ = form.unpack(self.theta)
        output = output.reshape(k, -1)
        inner, outer, within = _places(k + 1), _places(d + 1), output @ output.T
        hessian = np.zeros((form.size, form.size), np.float32 if self.rough else np.float64)
        at, _, after, _, _ = form.places()  # of weights and biases
        beside = hessian[at, at].reshape(k, d, k, d)
        slopes, _, fixed = _columns(form)
        held, degree = fixed[:, 0] >= 0, _degree(form)
        for i in range(k):  # the full table would be copied twice at this size
            block = self._pairs[inner[i]].take(outer, axis=1)  # (k+1, d+1, d+1): [j, a, b]
            if degree:
                self._units[i] = block @ np.append(weights[i], bias[i]) / degree
            mine = slopes[i, slopes[i] >= 0]
            for o in range(form.q):
                cross = output[i, o] * block[k, : len(mine), held]
                hessian[np.ix_(fixed[held, o], mine)] = cross
                hessian[np.ix_(mine, fixed[held, o])] = cross.T
            block = block[:k]
            block *= within[i][:, None, None]
            beside[i] = block[:, :d, :d].transpose(1, 0, 2)
            if after is not None:
                hessian[mine[:d], after] = block[:, :d, d].T
                hessian[mine[d], at], hessian[mine[d], after] = block[:, d, :d].ravel(), block[:, d, d]
        if degree:
            self._gram = (
                np.einsum("ija,ja->ij", self._units[:, :k], np.column_stack([weights, bias])) / degree
            )
        self._write_units(hessian, output)
        return hessian, *self.gradient()

    def _write_units(self, hessian: np.ndarray, output: np.ndarray) -> None:
        """What J'J has of units with each other and with all else, and of x~ with itself."""
        k, d = self.form.k, self.form.d
        slopes, units, fixed = _columns(self.form)  # parameters of s_i x~_a, of u_i, of x~_a; -1: not free
        free, held = slopes.ravel() >= 0, fixed[:, 0] >= 0
        flat = slopes.ravel()[free]
        level = self._pairs[-1][_places(d + 1)]  # sum of x~_a x~_b
        for o in range(self.form.q):
            mine, rest = units[:, o], fixed[held, o]
            along = (self._units[:, :k] * output[:, o, None]).reshape(k, -1)[:, free]
            hessian[np.ix_(mine, flat)] = along
            hessian[np.ix_(flat, mine)] = along.T
            hessian[np.ix_(mine, mine)] = self._gram
            hessian[np.ix_(mine, rest)] = self._units[:, k][:, held]
            hessian[np.ix_(rest, mine)] = self._units[:, k][:, held].T
            hessian[np.ix_(rest, rest)] = level[held][:, held]

    def gradient(self) -> tuple[np.ndarray, float]:
        """J'r and r'r alone."""
        if not self.pairs:
            return self._gradient, self._loss
        slopes, units, fixed = _columns(self.form)
        found, free, held = np.zeros(self.form.size), slopes >= 0, fixed[:, 0] >= 0
        found[slopes[free]] = self._towards[free]
        found[units.ravel()] = self._output.ravel()
        found[fixed[held].ravel()] = self._rest[held].ravel()
        return found, self._loss

    def _update_by_pairs(self, xt: np.ndarray, y: np.ndarray, root: np.ndarray) -> None:
        form, n = self.form, xt.shape[1]
        left, right = (m * (m + 1) // 2 for m in (form.k + 1, form.d + 1))
        largest = max(left, right) * (4 if self.rough else 8)
        columns = min(max(self.table // largest, 256), 4096, 1 << max(8, (n - 1).bit_length()))
        held = None if self.bare else _Held(left, right, columns, self.rough)
        weights, output, bias, beta, intercept = form.unpack(self.theta)
        output, beta = output.reshape(form.k, -1), beta.reshape(form.d, -1)
        level, y = np.reshape(intercept, (-1, 1)), y.reshape(n, -1).T
        for at in range(0, n, columns):
            part = slice(at, at + columns)
            x, target, scale = np.vstack([xt[:, part], np.ones_like(root[part])]), y[:, part], root[part]
            t = np.zeros((form.k, columns))  # filled up: one shape, one compilation
            t[:, : len(scale)] = weights @ x[: form.d] + bias[:, None]
            u, s = (np.asarray(v)[:, : len(scale)] for v in _units_and_slopes(form, jnp.asarray(t)))
            prediction = output.T @ u + level
            if form.skip:
                prediction += beta.T @ x[: form.d]
            r = scale * (prediction - target)
            s = np.vstack([s * scale, scale[None, :]])
            u = u * scale
            if held is not None:
                self._pairs += held.products(s, x)
                if not _degree(form):
                    self._units += held.along(s, x, u)
                    self._gram += u @ u.T
            self._towards += ((output @ r) * s[:-1]) @ x.T
            self._rest += x @ (scale * r).T
            self._output += u @ r.T
            self._loss += float(np.sum(r * r))


class _Held:
    """Tables of the pairs of some rows, written over and over."""

    def __init__(self, left: int, right: int, columns: int, rough: bool) -> None:
        self.kind = np.float32 if rough else np.float64
        self.tables = np.zeros((left, columns), self.kind), np.zeros((right, columns), self.kind)
        self.product = np.empty((left, right), self.kind)

    def products(self, s: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Of pairs of slopes (k+1, m) with pairs of inputs (d+1, m).

        NumPy's products alone: SciPy has a BLAS of its own, and the idle threads of one, which spin for a
        while, would take the cores from the other.
        """
        slopes, inputs = (v.astype(self.kind, copy=False) for v in (s, x))
        left, right = (
            _pairs(v, t[:, : v.shape[1]]) for v, t in zip((slopes, inputs), self.tables, strict=True)
        )
        return np.matmul(left, right.T, out=self.product)

    def along(self, s: np.ndarray, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """(k, k+1, d+1) of units (k, m) with slopes and inputs."""
        slopes, inputs, units = (v.astype(self.kind, copy=False) for v in (s, x, u))
        return np.stack([(unit * slopes) @ inputs.T for unit in units])


def _degree(form: Parametrisation) -> int:
    """Degree m with m g(t) = t g'(t); zero where there is none. The even part of such a g has it too."""
    return form.activation.homogeneity or 0


@partial(jax.jit, static_argnums=0)
def _units_and_slopes(form: Parametrisation, t: jax.Array) -> tuple[jax.Array, jax.Array]:
    return form.g(t), form.slope(t)


def _pairs(rows: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Products of rows i <= j in lexicographic order."""
    at, m = 0, len(rows)
    for i in range(m):
        np.multiply(rows[i], rows[i:], out=out[at : at + m - i])
        at += m - i
    return out


@lru_cache(maxsize=32)
def _places(m: int) -> np.ndarray:
    """(m, m) row of the pair (i, j) in the table of pairs."""
    place = np.zeros((m, m), int)
    i, j = np.triu_indices(m)
    place[i, j] = place[j, i] = np.arange(len(i))
    return place


@lru_cache(maxsize=32)
def _columns(form: Parametrisation) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Parameters of the products s_i x~_a (k, d+1), of units (k, q) and of x~_a (d+1, q); -1: not free."""
    k, d, q = form.k, form.d, form.q
    weights, output, bias, beta, intercept = (
        None if place is None else np.arange(place.start, place.stop) for place in form.places()
    )
    assert weights is not None
    assert output is not None
    slopes, fixed = np.full((k, d + 1), -1), np.full((d + 1, q), -1)
    slopes[:, :d] = weights.reshape(k, d)
    if bias is not None:
        slopes[:, d] = bias
    if beta is not None:
        fixed[:d] = beta.reshape(d, q)
    if intercept is not None:
        fixed[d] = intercept
    return slopes, output.reshape(k, q), fixed


class Triangle:
    """Keeps all the digits of J where J'J would lose half of them; dearer, so used only then."""

    def __init__(self, form: Parametrisation, theta: np.ndarray) -> None:
        self.form, self.theta = form, np.asarray(theta, float)
        self._upper, self._projected = np.zeros((0, form.size)), np.zeros(0)

    @in_double
    def update(self, X: Inputs, y: Target, weight: Weight = None, row: Numbers = None) -> Triangle:
        for r, J in jacobian_pieces(self.form, self.theta, X, y, weight, 64 << 20):
            self._stack(J, r)
        return self

    def merge(self, other: Triangle) -> Triangle:
        self._stack(other._upper, other._projected)
        return self

    def result(self) -> tuple[np.ndarray, np.ndarray]:
        """R (p, p) and Q'r (p,); rows of zeros where there were fewer samples than parameters."""
        missing = self.form.size - len(self._upper)
        return np.pad(self._upper, ((0, missing), (0, 0))), np.pad(self._projected, (0, missing))

    def _stack(self, J: np.ndarray, r: np.ndarray) -> None:
        self._upper, self._projected = stacked_triangle(self._upper, self._projected, J, r)


def stacked_triangle(
    upper: np.ndarray, projected: np.ndarray, J: np.ndarray, r: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """R and Q'r of [upper; J] and [projected; r]; the right side is one more column, so Q is not needed."""
    top, bottom = np.column_stack([upper, projected]), np.column_stack([J, r])
    R = np.asarray(np.linalg.qr(np.vstack([top, bottom]), mode="r"))[: J.shape[1]]
    return R[:, :-1], R[:, -1]
