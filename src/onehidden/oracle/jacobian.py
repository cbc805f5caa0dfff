"""The Jacobian of a layer: products in single precision, never built, and steps of least squares with it.

A product in single precision is enough for a step; the residual is computed in double, and the end has all
digits (iterative refinement).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from onehidden.oracle.layer import ROWS, Activated, Asked, Layer

_INNER = 60  # steps of LSMR
_PATIENT = 400  # those where it stopped short and normal equations are too dear
_CLOSE = 1e-6  # |J'r| against |J||r| then: what products in single precision can still tell
# |J'r| against |J||r| at which a step is good enough: the next one starts from a residual in double.
# 1e-3 takes 16 products of a random Jacobian with twice as many rows as columns, and gains a factor of 100.
ENOUGH = 1e-3
_DENSE = 1200  # parameters up to which the Jacobian is built, and the step solved by a pivoted QR
_WORK = 1e12  # n q p²: up to which normal equations are worth their time (about 30 s)
_RIDGE = 1e-13  # beside columns of length one: what a direction that changes nothing may weigh
_BLOCK = 64 << 20  # bytes of the rows of the Jacobian that are held at once


class Jacobian:
    """Products with the weighted Jacobian at a layer, columns scaled to unit length, in single precision."""

    def __init__(self, layer: Layer, asked: Asked, g: Activated) -> None:
        self.layer, self.U, self.g, self.dtype = layer, asked.U, g, np.dtype(float)
        n, k = len(asked.U), len(layer.bias)
        self.weight = asked.weight.astype(np.float32)[:, None]
        self.level, self.slope = np.empty((n, k), np.float32), np.empty((n, k), np.float32)
        for begin in range(0, n, ROWS):
            part = slice(begin, begin + ROWS)
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
        for begin in range(0, len(self.U), ROWS):
            part = slice(begin, begin + ROWS)
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
        self, rights: list[Float[np.ndarray, "n q"]], enough: float = ENOUGH, thorough: bool = False
    ) -> Float[np.ndarray, "r p"]:
        """The steps that J turns into ``rights``, in least squares; ``thorough`` where they stopped short."""
        from scipy.linalg import lstsq
        from scipy.sparse.linalg import aslinearoperator, lsmr

        if len(self.scale) <= _DENSE:  # one factorisation for all of them
            columns = np.stack([right.ravel() for right in rights], axis=1)
            solved = lstsq(self._dense(slice(None)), columns, cond=1e-12, lapack_driver="gelsy")
            assert solved is not None
            return self.scale * solved[0].T
        if thorough and self._affordable:
            return self.scale * self._by_normal_equations(rights)
        inner, enough = (_PATIENT, _CLOSE) if thorough else (_INNER, enough)
        operator, steps = aslinearoperator(self), []
        for right in rights:
            size = float(np.linalg.norm(right)) or 1.0
            b = right.ravel() / size
            steps.append(lsmr(operator, b, atol=enough, btol=0, conlim=1e7, maxiter=inner)[0] * size)
        return self.scale * np.array(steps)

    @property
    def _affordable(self) -> bool:
        """Whether a step by the normal equations is worth its time."""
        return self.shape[0] * float(self.shape[1]) ** 2 <= _WORK

    def _by_normal_equations(self, rights: list[Float[np.ndarray, "n q"]]) -> Float[np.ndarray, "r p"]:
        """(J'J + ridge) step = J' right: a few digits even where LSMR would need thousands of products."""
        from scipy.linalg import cho_factor, cho_solve

        p, q = len(self.scale), self.layer.output.shape[1]
        product, right = np.zeros((p, p)), np.zeros((p, len(rights)))
        rows = max(1, _BLOCK // (8 * p * q))
        for begin in range(0, len(self.U), rows):
            part = slice(begin, begin + rows)
            J = self._dense(part)
            product += J.T @ J
            right += J.T @ np.stack([one[part].ravel() for one in rights], axis=1)
        product[np.diag_indices(p)] += _RIDGE
        return cho_solve(cho_factor(product, overwrite_a=True), right).T

    def _dense(self, part: slice) -> Float[np.ndarray, "m p"]:
        """Rows of the Jacobian itself, in double precision; row n q + j is output j of question n."""
        U = np.asarray(self.U[part], float)
        n, (k, q) = len(U), self.layer.output.shape
        # In single precision a direction that changes nothing, the length of a row, would seem to change it.
        level, slope = self.g(U @ self.layer.weights.T + self.layer.bias)
        spread = slope[:, None, :] * self.layer.output.T  # (n, q, k)
        blocks = [np.einsum("nqk,nd->nqkd", spread, U).reshape(n * q, -1), spread.reshape(n * q, k)]
        eye = np.eye(q)
        blocks.append(np.einsum("nk,qr->nqkr", level, eye).reshape(n * q, -1))
        blocks.append(np.tile(eye, (n, 1)))
        if self.layer.linear is not None:
            blocks.append(np.einsum("nd,qr->nqdr", U, eye).reshape(n * q, -1))
        weight = np.repeat(self.weight[part, 0].astype(float), q)
        return np.concatenate(blocks, axis=1) * weight[:, None] * self.scale
