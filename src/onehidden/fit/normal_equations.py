"""J'J, J'r and r'r of a network fit as a mergeable sum over batches, without forming J.

With x~ = (x, 1) and s~ = (slopes, 1) a column of the Jacobian of output o is a product w_io s~_i x~_a, or a
unit u_j, or x~_a. A block of J'J, (W W')_ij sum_n s~_i s~_j x~_a x~_b, is symmetric in (i, j) and in (a, b):
all of them are the product of a table of (k+1)(k+2)/2 pairs with one of (d+1)(d+2)/2, a quarter of the work
of J'J written out, and the same whatever the number of outputs.
"""

from __future__ import annotations

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from onehidden.fit.form import Form, roots, written_out
from onehidden.fit.rows import Inputs, Numbers, Target, Weight
from onehidden.precision import in_double

_ENTRIES = 1 << 20  # entries of the largest table held at a time
_JACOBIAN_BYTES = 8 << 20  # what stays in the cache
_MANY = 400  # parameters below which one compiled Jacobian beats many small products
WRITE = 60  # multiply-adds of a matrix product in the time of writing one entry of a table


def by_pairs(form: Form) -> bool:
    """Whether the tables of pairs are cheaper than the Jacobian written out and multiplied by itself."""
    left, right = (m * (m + 1) // 2 for m in (form.k + 1, form.d + 1))
    cheaper = 2 * left * right + WRITE * (left + right) < form.q * (form.size**2 + WRITE * form.size)
    return form.size >= _MANY and cheaper


class NormalEquations:
    """Accumulator of J'J (p, p), J'r (p,) and r'r at one theta; ``update(X, y, weight)`` adds a batch.

    ``rough`` asks for six digits of J'J: its products of tables are then in single precision, slab by slab,
    their sums and everything else in double. ``written`` has the Jacobian written out whatever it costs:
    weights that differ from output to output leave no other way. ``bare``, for tables of pairs, leaves J'J
    out: only ``gradient`` may be asked then.
    """

    def __init__(
        self,
        form: Form,
        theta: np.ndarray,
        rough: bool = False,
        written: bool = False,
        bare: bool = False,
    ) -> None:
        self.form, self.theta, self.n, self.rough = form, np.asarray(theta, float), 0, rough
        self.bare = bare
        self.pairs = by_pairs(form) and not written
        self._loss = 0.0
        if self.pairs:
            left, right = (m * (m + 1) // 2 for m in (form.k + 1, form.d + 1))
            self._pairs = np.zeros((0, 0) if bare else (left, right))
            self._units = np.zeros((form.k, form.k + 1, form.d + 1))
            self._gram = np.zeros((form.k, form.k))
            self._towards = np.zeros((form.k, form.d + 1))  # sum of <w_i, r> s_i x~_a
            self._rest = np.zeros((form.d + 1, form.q))  # sum of x~_a r_o
            self._output = np.zeros((form.k, form.q))
        else:
            self._hessian, self._gradient = np.zeros((form.size, form.size)), np.zeros(form.size)

    @in_double
    def update(self, X: Inputs, y: Target, weight: Weight = None, row: Numbers = None) -> NormalEquations:
        """Add rows X (n, d), targets y (n,) or (n, q) and weights (n,), one each when None."""
        root = roots(weight, len(y))
        self.n += len(y)
        if self.pairs:
            self._update_by_pairs(np.ascontiguousarray(X.T), y, root)
            return self
        rows = 1 << max(8, (_JACOBIAN_BYTES // (8 * self.form.size * self.form.q)).bit_length() - 1)
        for at in range(0, len(y), rows):
            part = slice(at, at + rows)
            r, J = written_out(self.form, self.theta, X[part], y[part], root[part])
            # NumPy turns J.T @ J into a symmetric rank-k product, half the work of XLA's on the CPU.
            self._hessian += J.T @ J
            self._gradient += J.T @ r
            self._loss += float(r @ r)
        return self

    def merge(self, other: NormalEquations) -> NormalEquations:
        if self.form != other.form or not np.array_equal(self.theta, other.theta):
            raise ValueError("only normal equations of one form at one theta merge")
        for name, value in vars(other).items():
            if name not in ("form", "theta", "rough", "bare", "pairs"):
                setattr(self, name, getattr(self, name) + value)
        return self

    def result(self) -> tuple[np.ndarray, np.ndarray, float]:
        """J'J, J'r and r'r."""
        if not self.pairs:
            return self._hessian, self._gradient, self._loss
        form, q = self.form, self.form.q
        k, d = form.k, form.d
        output = form.unpack(self.theta)[1].reshape(k, q)
        inner, outer, within = _places(k + 1), _places(d + 1), output @ output.T
        hessian = np.zeros((form.size, form.size))
        slopes, units, fixed = _columns(form)  # parameters of s_i x~_a, of u_i, of x~_a; -1 where not free
        flat = slopes.ravel()
        free, held = flat >= 0, fixed[:, 0] >= 0
        # Unit by unit: the full table would be copied twice at this size.
        for i in range(k):
            mine = slopes[i] >= 0
            block = self._pairs[inner[i]][:, outer]  # (k+1, d+1, d+1): [j, a, b]
            beside = block[:k] * within[i][:, None, None]
            beside = beside.transpose(1, 0, 2).reshape(d + 1, -1)
            hessian[np.ix_(slopes[i][mine], flat[free])] = beside[mine][:, free]
            for o in range(q):
                cross = output[i, o] * block[k][mine][:, held]
                hessian[np.ix_(slopes[i][mine], fixed[held, o])] = cross
                hessian[np.ix_(fixed[held, o], slopes[i][mine])] = cross.T
        level = self._pairs[inner[k, k]][outer]  # sum of x~_a x~_b
        for o in range(q):
            along = (self._units[:, :k] * output[:, o, None]).reshape(k, -1)[:, free]
            hessian[np.ix_(units[:, o], flat[free])] = along
            hessian[np.ix_(flat[free], units[:, o])] = along.T
            hessian[np.ix_(units[:, o], units[:, o])] = self._gram
            hessian[np.ix_(units[:, o], fixed[held, o])] = self._units[:, k][:, held]
            hessian[np.ix_(fixed[held, o], units[:, o])] = self._units[:, k][:, held].T
            hessian[np.ix_(fixed[held, o], fixed[held, o])] = level[held][:, held]
        return hessian, *self.gradient()

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
        largest = max(left, right, form.k * (form.k + 1))
        columns = min(max(_ENTRIES // largest, 256), 4096, 1 << max(8, (n - 1).bit_length()))
        held = None if self.bare else _Held(form, left, right, columns, self.rough)
        weights, output, bias, beta, intercept = form.unpack(self.theta)
        output, beta = output.reshape(form.k, -1), beta.reshape(form.d, -1)
        level, y = np.reshape(intercept, (-1, 1)), y.reshape(n, -1).T
        for at in range(0, n, columns):
            part = slice(at, at + columns)
            width = y[:, part].shape[1]
            x, target = np.zeros((form.d + 1, columns)), np.zeros((len(y), columns))
            scale = np.zeros(columns)
            x[: form.d, :width], x[form.d, :width] = xt[:, part], 1.0
            target[:, :width], scale[:width] = y[:, part], root[part]
            t = weights @ x[: form.d] + bias[:, None]
            u, s = (np.asarray(v) for v in _units_and_slopes(form, jnp.asarray(t)))
            prediction = output.T @ u + level
            if form.skip:
                prediction += beta.T @ x[: form.d]
            r = scale * (prediction - target)
            s = np.vstack([s * scale, scale[None, :]])
            u = u * scale
            if held is not None:
                pairs, along = held.products(s, x, u)
                self._pairs += pairs
                self._units += along
                self._gram += u @ u.T
            self._towards += ((output @ r) * s[:-1]) @ x.T
            self._rest += x @ (scale * r).T
            self._output += u @ r.T
            self._loss += float(np.sum(r * r))


class _Held:
    """Tables of the pairs of some rows, written over and over."""

    def __init__(self, form: Form, left: int, right: int, columns: int, rough: bool) -> None:
        self.kind = np.float32 if rough else np.float64
        self.tables = np.zeros((left, columns), self.kind), np.zeros((right, columns), self.kind)
        self.product = np.empty((left, right), self.kind)
        self.beside = np.empty((form.k, form.k + 1, columns), self.kind)

    def products(self, s: np.ndarray, x: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of pairs of slopes (k+1, m) with pairs of inputs (d+1, m); of units (k, m) with slopes and inputs.

        NumPy's products alone: SciPy has a BLAS of its own, and the idle threads of one, which spin for a
        while, would take the cores from the other.
        """
        slopes, inputs, units = (v.astype(self.kind, copy=False) for v in (s, x, u))
        left, right = _pairs(slopes, self.tables[0]), _pairs(inputs, self.tables[1])
        np.multiply(units[:, None], slopes, out=self.beside)
        along = self.beside.reshape(-1, x.shape[1]) @ inputs.T
        return np.matmul(left, right.T, out=self.product), along.reshape(len(u), len(s), len(x))


@partial(jax.jit, static_argnums=0)
def _units_and_slopes(form: Form, t: jax.Array) -> tuple[jax.Array, jax.Array]:
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
def _columns(form: Form) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
