"""Local likelihood of degree at most 2 with the Gaussian kernel: closed form over kernel sums."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from onehidden.precision import in_double
from onehidden.scores.kernel_sums import Tiles, kernel_sums

CURVATURES = ("full", "diagonal", "spherical", "none")


class LocalFit(NamedTuple):
    """Derivatives of log f at q points in working coordinates.

    Attributes
    ----------
    log_density : (q,) â_0, not normalised to mass one over space.
    derivatives : Â_1 (q, d), Â_2 (q, d, d), …
    mass : (q,) kernel-weighted number of neighbours.
    ok : (q,) whether the local problem has a well conditioned solution.
    """

    log_density: np.ndarray
    derivatives: list[np.ndarray]
    mass: np.ndarray
    ok: np.ndarray


@in_double
def local_moments(
    data: Tiles, Q: Float[np.ndarray, "q d"], h: Float[np.ndarray, " q"]
) -> tuple[Float[np.ndarray, " q"], Float[np.ndarray, "q d"], Float[np.ndarray, "q d d"]]:
    """M_0 (q,), the local mean minus x (q, d) and the local covariance (q, d, d)."""
    return _centred(kernel_sums(data, Q, h), Q, data[2])


def _centred(
    M: np.ndarray, Q: np.ndarray, upper: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mass, mean minus query and covariance from the raw sums."""
    q, d = Q.shape
    mass = M[:, 0]
    safe = np.maximum(mass, np.finfo(float).tiny)[:, None]
    centre = M[:, 1 : d + 1] / safe
    second = np.empty((q, d, d))
    second[:, upper[0], upper[1]] = second[:, upper[1], upper[0]] = M[:, d + 1 :] / safe
    return mass, centre - Q, second - centre[:, :, None] * centre[:, None, :]


def gaussian_fit(
    data: Tiles,
    n: int,
    Q: Float[np.ndarray, "q d"],
    h: Float[np.ndarray, " q"],
    curvature: str = "full",
    leave_out: bool = False,
) -> LocalFit:
    """(14)–(15) of [GMOV]: â_1 = C⁻¹m̄, Â_2 = h⁻²I - C⁻¹, with C restricted where asked.

    The kernel times the local density is Gaussian of mean m̄ and covariance C, so a quadratic term that is
    diagonal or a multiple of the identity restricts C the same way; none at all is degree 1, C = h²I.

    Parameters
    ----------
    data : of ``prepare``; n its number of rows.
    Q, h : (q, d) points and (q,) bandwidths.
    leave_out : the points are rows of the data and each is left out of its own fit: it lies at distance
        zero, so only M_0 changes.
    """
    mass, mean, cov = local_moments(data, Q, h)
    if leave_out:
        rest = np.maximum(mass - 1.0, 0.0)
        ratio = (mass / np.maximum(rest, 1e-12))[:, None]
        raw = cov + mean[:, :, None] * mean[:, None, :]
        mean = mean * ratio
        cov = raw * ratio[:, :, None] - mean[:, :, None] * mean[:, None, :]
        mass = rest
    d = Q.shape[1]
    eye = np.eye(d)
    if curvature == "diagonal":
        cov = cov * eye
    elif curvature == "spherical":
        cov = (np.trace(cov, axis1=1, axis2=2) / d)[:, None, None] * eye
    elif curvature == "none":
        cov = (h**2)[:, None, None] * eye
    ok, log_det = _conditioned(cov, h)
    ok &= mass > 1e-6
    cov = np.where(ok[:, None, None], cov, (h**2)[:, None, None] * eye)
    log_det = np.where(ok, log_det, 2 * d * np.log(h))
    precision = np.linalg.inv(cov)
    first = np.einsum("qij,qj->qi", precision, mean)
    second = eye / (h**2)[:, None, None] - precision
    log_density = (
        np.log(np.maximum(mass, np.finfo(float).tiny) / (n - leave_out))
        - 0.5 * np.sum(mean * first, axis=1)
        - 0.5 * (log_det + d * np.log(2 * np.pi))
    )
    return LocalFit(log_density, [first, second], mass, ok)


def _conditioned(
    cov: Float[np.ndarray, "q d d"], h: Float[np.ndarray, " q"]
) -> tuple[Bool[np.ndarray, " q"], Float[np.ndarray, " q"]]:
    """Whether the smallest eigenvalue of each says something, and its log determinant.

    The other eigenvalues of a positive definite C multiply to at most (tr C/(d-1))^{d-1}, so that det C
    bounds the smallest from below, and Cholesky's factors prove C definite. Eigenvalues, seven times as
    dear, are computed where that does not decide.
    """
    d = cov.shape[1]
    trace = np.trace(cov, axis1=1, axis2=2)
    # Relative to h² the local covariance is of order one; below this a direction holds no information.
    least = 1e-8 * np.maximum(h**2 * 1e-4, trace)
    sign, log_det = np.linalg.slogdet(cov)
    others = (d - 1) * np.log(np.maximum(trace, np.finfo(float).tiny) / max(d - 1, 1))
    ok = (sign > 0) & (log_det - others > np.log(least))
    try:
        np.linalg.cholesky(cov[ok])
    except np.linalg.LinAlgError:
        ok[:] = False
    ok[~ok] = np.linalg.eigvalsh(cov[~ok])[:, 0] > least[~ok]
    return ok, log_det
