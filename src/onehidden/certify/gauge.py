"""Directions in parameter space that change the function, and the curvature along them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onehidden.objectives.residuals import Form


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
    """

    values: np.ndarray
    rank: int
    freedom: int
    covariance: np.ndarray
    blind: np.ndarray


def free_directions(form: Form, theta: np.ndarray, normals: np.ndarray | None) -> np.ndarray:
    """(p, f) orthonormal basis of the parameter changes allowed in canonical form.

    For homogeneous g the scale of a unit can be traded against its output: canonical rows have unit
    norm, so a row may only move within the hyperplane orthogonal to ``normals`` (k, d).
    """
    p = len(theta)
    if normals is None:
        return np.eye(p)
    basis = np.zeros((p, p - form.k))
    at = 0
    for i in range(form.k):
        normal = normals[i] / max(np.linalg.norm(normals[i]), np.finfo(float).tiny)
        # the last d - 1 columns of the Householder reflection that sends e_1 to the normal
        mirror = normal.copy()
        mirror[0] += 1.0 if mirror[0] >= 0 else -1.0
        reflection = np.eye(form.d) - 2 * np.outer(mirror, mirror) / (mirror @ mirror)
        basis[i * form.d : (i + 1) * form.d, at : at + form.d - 1] = reflection[:, 1:]
        at += form.d - 1
    rest = p - form.k * form.d
    basis[form.k * form.d :, at:] = np.eye(rest)
    return basis


def curvature(hessian: np.ndarray, directions: np.ndarray) -> Curvature:
    """Spectrum, rank and inverse of J'J along the free directions."""
    reduced = directions.T @ hessian @ directions
    diagonal = np.diag(reduced)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    value, vector = np.linalg.eigh(reduced / np.outer(scale, scale))
    # J'J loses half the digits of J: eigenvalues below p * eps * largest are rounding.
    seen = value > max(1e-13, len(value) * np.finfo(float).eps) * value[-1]
    root = vector[:, seen] / np.sqrt(value[seen])
    mapped = directions @ (root / scale[:, None])
    lost = np.abs(directions @ (vector[:, ~seen] / scale[:, None]))
    reach = np.max(lost, axis=1) if lost.shape[1] else np.zeros(len(directions))
    blind = reach > 1e-4 * max(float(np.max(reach)), np.finfo(float).tiny) if lost.shape[1] else reach > 0
    return Curvature(value, int(seen.sum()), len(value), mapped @ mapped.T, blind)
