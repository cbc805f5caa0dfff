"""Directions in parameter space that change the function, and the curvature along them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onehidden.fit.form import Form

_LARGE = 1000  # directions from which eigenvalues in single precision save time worth having: half of .2 s
# Smallest eigenvalue over the largest above which seven digits of the largest tell it to a thousandth: of
# 2501 directions, d = k = 50, it was 4e-4 and known to 1e-4 of itself.
_PLAIN = 1e-4


@dataclass(frozen=True)
class Curvature:
    """Spectrum of the Gauss–Newton matrix J'J/n along the free directions.

    Attributes
    ----------
    values : (f,) eigenvalues, ascending, of the matrix with unit diagonal (so that units do not matter).
    rank : eigenvalues above rounding.
    freedom : f, the number of free directions.
    covariance : (p, p) pseudo-inverse of J'J mapped back to all parameters.
    blind : (p,) whether the data leave this parameter undetermined.
    lengths : (f,) of the columns of J along the free directions (1 for a column of zeros).
    """

    values: np.ndarray
    rank: int
    freedom: int
    covariance: np.ndarray
    blind: np.ndarray
    lengths: np.ndarray

    @property
    def plain(self) -> bool:
        """Whether every direction is seen so well that J'J in single precision says so, too."""
        return bool(self.values[0] > _PLAIN * self.values[-1])


class FreeDirections:
    """D (p, f), an orthonormal basis of the parameter changes allowed in canonical form; never written out.

    For homogeneous g the scale of a unit can be traded against its output: canonical rows have unit
    norm, so a row may only move within the hyperplane orthogonal to its normal in ``normals`` (k, d). Its
    basis are the last d - 1 columns of the Householder reflection that sends e_1 to the normal.
    """

    def __init__(self, form: Form, normals: np.ndarray | None) -> None:
        k, d = form.k, form.d
        self._mirrors, self._kept = None, np.arange(form.size)
        if normals is not None:
            length = np.linalg.norm(normals, axis=1, keepdims=True)
            mirrors = normals / np.maximum(length, np.finfo(float).tiny)
            mirrors[:, 0] += np.where(mirrors[:, 0] >= 0, 1.0, -1.0)
            self._mirrors = mirrors / np.linalg.norm(mirrors, axis=1, keepdims=True)
            self._kept = np.delete(self._kept, np.arange(k) * d)
        self.size, self.freedom = form.size, len(self._kept)

    def inward(self, array: np.ndarray) -> np.ndarray:
        """D' A for A (p, …)."""
        return self._reflected(array)[self._kept]

    def outward(self, array: np.ndarray) -> np.ndarray:
        """D A for A (f, …)."""
        whole = np.zeros((self.size, *array.shape[1:]))
        whole[self._kept] = array
        return self._reflected(whole)

    def _reflected(self, array: np.ndarray) -> np.ndarray:
        if self._mirrors is None:
            return array
        turned = np.array(array, order="C")
        k, d = self._mirrors.shape
        # Unit by unit, in the cache: all of them at once takes three times as long at 2500 parameters.
        for mirror, block in zip(self._mirrors, turned[: k * d].reshape(k, d, -1), strict=True):
            block -= np.outer(2 * mirror, mirror @ block)
        return turned


def curvature(hessian: np.ndarray, free: FreeDirections) -> Curvature:
    """Spectrum, rank and inverse of J'J along the free directions."""
    reduced = free.inward(free.inward(hessian).T)
    diagonal = np.diag(reduced).copy()
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    reduced /= scale[:, None]
    reduced /= scale
    value = _eigenvalues(reduced)
    # J'J loses half the digits of J: eigenvalues below p * eps * largest are rounding.
    rounding = max(1e-13, len(value) * np.finfo(float).eps) * value[-1]
    inverse, lost = _inverse(reduced) if value[0] > rounding else None, np.zeros((free.size, 0))
    if inverse is None:  # the vectors too, which cost more
        value, vector = np.linalg.eigh(reduced)
        seen = value > rounding
        root = vector[:, seen] / np.sqrt(value[seen])
        inverse, lost = root @ root.T, np.abs(free.outward(vector[:, ~seen] / scale[:, None]))
    inverse /= scale[:, None]
    inverse /= scale
    reach = np.max(lost, axis=1) if lost.shape[1] else np.zeros(free.size)
    blind = reach > 1e-4 * max(float(np.max(reach)), np.finfo(float).tiny) if lost.shape[1] else reach > 0
    covariance = free.outward(free.outward(inverse).T)
    return Curvature(value, int(np.sum(value > rounding)), len(value), covariance, blind, scale)


def _inverse(matrix: np.ndarray) -> np.ndarray | None:
    """Of a symmetric positive matrix: half the work of a general inverse. None where rounding forbids it."""
    from scipy.linalg.lapack import dpotrf, dpotri  # pyright: ignore[reportAttributeAccessIssue]

    factor, failed = dpotrf(matrix.T, lower=1)
    if failed:
        return None
    lower = dpotri(factor, lower=1, overwrite_c=1)[0]  # zero above the diagonal, as the factor was
    diagonal = np.diag(lower).copy()
    lower = lower + lower.T
    lower[np.diag_indices_from(lower)] = diagonal
    return lower


def _eigenvalues(matrix: np.ndarray) -> np.ndarray:
    """Ascending; of many in single precision where the smallest then is known to a thousandth all the same.

    Nothing is decided by more digits of them than whether the smallest is above rounding.
    """
    if len(matrix) >= _LARGE:
        value = np.linalg.eigvalsh(matrix.astype(np.float32)).astype(float)
        if value[0] > _PLAIN * value[-1]:
            return value
    return np.linalg.eigvalsh(matrix)
