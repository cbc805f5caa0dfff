"""Least squares in all parameters at any size: Gauss–Newton steps by LSMR, the Jacobian never built.

The function is f(u) = c + L u + sum_i W_i g(<a_i, u> + b_i), q outputs over one hidden layer; L is there
while the orientation of the units is open. A step multiplies by the Jacobian in single precision, which is
enough for a step, and the residual is computed in double: the end has all digits (iterative refinement).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from onehidden.run import Run

Activated = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
_ROWS = 8192  # rows of one block of the double precision residual
_INNER = 60  # steps of LSMR
# |J'r| against |J||r| at which a step is good enough: the next one starts from a residual in double.
# 1e-3 takes 16 products of a random Jacobian with twice as many rows as columns, and gains a factor of 100.
_ENOUGH = 1e-3
_ENOUGH_DRAWN = 1e-2  # for the size of an error
_DENSE = 1200  # parameters up to which the Jacobian is built, and the step solved by a pivoted QR
_OUTER = 12


@dataclass(frozen=True, eq=False)
class Layer:
    """All parameters; ``linear`` (d, q) is None where there is no linear part.

    Attributes
    ----------
    weights : (k, d). bias : (k,). output : (k, q). constant : (q,). linear : (d, q) or None.
    """

    weights: Float[np.ndarray, "k d"]
    bias: Float[np.ndarray, " k"]
    output: Float[np.ndarray, "k q"]
    constant: Float[np.ndarray, " q"]
    linear: Float[np.ndarray, "d q"] | None = None

    def pack(self) -> Float[np.ndarray, " p"]:
        linear = np.zeros(0) if self.linear is None else self.linear.ravel()
        return np.concatenate([self.weights.ravel(), self.bias, self.output.ravel(), self.constant, linear])

    def moved(self, theta: Float[np.ndarray, " p"]) -> Layer:
        """The layer with these numbers in place of its own."""
        parts, begin = [], 0
        for one in (self.weights, self.bias, self.output, self.constant, self.linear):
            if one is None:
                parts.append(None)
                continue
            parts.append(theta[begin : begin + one.size].reshape(one.shape))
            begin += one.size
        return Layer(*parts)

    def normalised(self) -> Layer:
        """Unit rows, for a g that is homogeneous of degree one."""
        size = np.linalg.norm(self.weights, axis=1)
        size = np.where(size > 0, size, 1.0)
        return replace(
            self,
            weights=self.weights / size[:, None],
            bias=self.bias / size,
            output=self.output * size[:, None],
        )


@dataclass(frozen=True, eq=False)
class Asked:
    """Questions and answers.

    U : (n, d) in single precision, exactly as asked. Y : (n, q). noise : (n,) standard error of the answers.
    """

    U: Float[np.ndarray, "n d"]
    Y: Float[np.ndarray, "n q"]
    noise: Float[np.ndarray, " n"]

    @property
    def weight(self) -> Float[np.ndarray, " n"]:
        """1 for the sharpest answer, less in proportion for others."""
        return float(np.min(self.noise)) / self.noise

    @property
    def least(self) -> float:
        """What no fit leaves less of: root mean square of the weighted noise."""
        return float(np.min(self.noise))


def told(layer: Layer, U: Float[np.ndarray, "n d"], g: Activated) -> Float[np.ndarray, "n q"]:
    """The function at rows of u, in blocks."""
    found = np.empty((len(U), layer.output.shape[1]))
    for begin in range(0, len(U), _ROWS):
        part = np.asarray(U[begin : begin + _ROWS], float)
        found[begin : begin + _ROWS] = (
            g(part @ layer.weights.T + layer.bias)[0] @ layer.output + layer.constant
        )
        if layer.linear is not None:
            found[begin : begin + _ROWS] += part @ layer.linear
    return found


class _Jacobian:
    """Products with the weighted Jacobian at a layer, columns scaled to unit length, in single precision."""

    def __init__(self, layer: Layer, asked: Asked, g: Activated) -> None:
        self.layer, self.U, self.g, self.dtype = layer, asked.U, g, np.dtype(float)
        n, k = len(asked.U), len(layer.bias)
        self.weight = asked.weight.astype(np.float32)[:, None]
        self.level, self.slope = np.empty((n, k), np.float32), np.empty((n, k), np.float32)
        for begin in range(0, n, _ROWS):
            part = slice(begin, begin + _ROWS)
            z = np.asarray(asked.U[part], float) @ layer.weights.T + layer.bias
            self.level[part], self.slope[part] = g(z)
        self.output = layer.output.astype(np.float32)
        self.scale = self._lengths()

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.U) * self.output.shape[1], len(self.scale)

    def _lengths(self) -> Float[np.ndarray, " p"]:
        """Inverse lengths of the columns."""
        heavy, d = self.weight**2, self.U.shape[1]
        strength = np.sum(self.output**2, axis=1)
        rows = np.zeros((len(self.layer.bias), d), np.float32)
        square = np.zeros((d,), np.float32)
        for begin in range(0, len(self.U), _ROWS):
            part = slice(begin, begin + _ROWS)
            U2 = self.U[part] ** 2
            rows += (self.slope[part] ** 2 * heavy[part]).T @ U2
            square += heavy[part][:, 0] @ U2
        rows *= strength[:, None]
        bias = np.sum(self.slope**2 * heavy, axis=0) * strength
        output = np.repeat(np.sum(self.level**2 * heavy, axis=0)[:, None], self.output.shape[1], axis=1)
        constant = np.full(self.output.shape[1], heavy.sum())
        linear = (
            None if self.layer.linear is None else np.repeat(square[:, None], self.output.shape[1], axis=1)
        )
        squares = Layer(rows, bias, output, constant, linear).pack().astype(float)
        least = 1e-12 * squares.max()
        return np.where(squares > least, 1 / np.sqrt(np.maximum(squares, least)), 0.0)

    def matvec(self, step: np.ndarray) -> np.ndarray:
        """J step, (n q,)."""
        move = self.layer.moved((self.scale * step).astype(np.float32))
        z = self.U @ move.weights.T
        z += move.bias
        z *= self.slope
        out = z @ self.output + self.level @ move.output + move.constant
        if move.linear is not None:
            out += self.U @ move.linear
        return (out * self.weight).ravel().astype(float)

    def rmatvec(self, residual: np.ndarray) -> np.ndarray:
        """J' residual, (p,)."""
        R = residual.reshape(len(self.U), -1).astype(np.float32) * self.weight
        S = (R @ self.output.T) * self.slope
        linear = None if self.layer.linear is None else self.U.T @ R
        found = Layer(S.T @ self.U, S.sum(axis=0), self.level.T @ R, R.sum(axis=0), linear)
        return self.scale * found.pack().astype(float)

    def solve(
        self, rights: list[Float[np.ndarray, "n q"]], enough: float = _ENOUGH
    ) -> Float[np.ndarray, "r p"]:
        """The steps that J turns into ``rights``, in least squares."""
        from scipy.linalg import lstsq
        from scipy.sparse.linalg import aslinearoperator, lsmr

        if len(self.scale) <= _DENSE:  # one factorisation for all of them
            columns = np.stack([right.ravel() for right in rights], axis=1)
            solved = lstsq(self._dense(), columns, cond=1e-12, lapack_driver="gelsy")
            assert solved is not None
            return self.scale * solved[0].T
        operator, steps = aslinearoperator(self), []
        for right in rights:
            size = float(np.linalg.norm(right)) or 1.0
            b = right.ravel() / size
            steps.append(lsmr(operator, b, atol=enough, btol=0, conlim=1e7, maxiter=_INNER)[0] * size)
        return self.scale * np.array(steps)

    def _dense(self) -> Float[np.ndarray, "m p"]:
        """The Jacobian itself, in double precision; row n q + j is output j of question n."""
        n, (k, q), U = len(self.U), self.layer.output.shape, np.asarray(self.U, float)
        # In single precision a direction that changes nothing, the length of a row, would seem to change it.
        level, slope = self.g(U @ self.layer.weights.T + self.layer.bias)
        spread = slope[:, None, :] * self.layer.output.T  # (n, q, k)
        blocks = [np.einsum("nqk,nd->nqkd", spread, U).reshape(n * q, -1), spread.reshape(n * q, k)]
        eye = np.eye(q)
        blocks.append(np.einsum("nk,qr->nqkr", level, eye).reshape(n * q, -1))
        blocks.append(np.tile(eye, (n, 1)))
        if self.layer.linear is not None:
            blocks.append(np.einsum("nd,qr->nqdr", U, eye).reshape(n * q, -1))
        weight = np.repeat(self.weight[:, 0].astype(float), q)
        return np.concatenate(blocks, axis=1) * weight[:, None] * self.scale


def descended(
    layer: Layer,
    asked: Asked,
    g: Activated,
    run: Run,
    homogeneous: bool,
    floor: float = 0.0,
    coarse: bool = False,
) -> Layer:
    """The layer after Gauss–Newton steps, each shortened until it leads downwards.

    They end where what is left is ``floor``, the root mean square of the rounding, or a step gains little. In
    a coarse box the noise hides what a step gains, and steps are taken until they gain next to nothing.
    """

    def left(one: Layer) -> np.ndarray:
        return (asked.Y - told(one, asked.U, g)) * asked.weight[:, None]

    residual = left(layer)
    loss = float(np.mean(residual**2))
    for step in range(_OUTER):
        if run.expired():
            break
        move = _Jacobian(layer, asked, g).solve([residual])[0]
        after, trial = residual, layer
        for shorter in (1.0, 0.5, 0.25, 0.1, 0.01):
            trial = layer.moved(layer.pack() + shorter * move)
            trial = trial.normalised() if homogeneous else trial
            after = left(trial)
            if np.mean(after**2) < loss:
                break
        else:
            break
        gained = np.mean(after**2) / loss
        layer, residual, loss = trial, after, float(np.mean(after**2))
        run.report("least squares", step, loss)
        if gained > (0.995 if coarse else 0.5) or (loss <= floor**2 and not coarse):
            break
    return layer


def drawn(
    layer: Layer, asked: Asked, g: Activated, noise: Callable[[], Float[np.ndarray, "n q"]], draws: int
) -> list[Layer]:
    """What the parameters would move by if the answers had such noise: their errors, as many draws of it."""
    rights = [noise() * asked.weight[:, None] for _ in range(draws)]
    return [layer.moved(step) for step in _Jacobian(layer, asked, g).solve(rights, _ENOUGH_DRAWN)]
