"""Whether the residuals still carry structure: a score test against random further units."""

from __future__ import annotations

import numpy as np

from onehidden.objectives.fit import NetworkFit


def structure_p_value(
    fit: NetworkFit, theta: np.ndarray, hessian: np.ndarray, Z: np.ndarray, seed: int, robust: bool = False
) -> float:
    """Probability, under independent noise, of residuals so well explained by random units.

    Features F (n, M) are random units of the same activation; with r orthogonal to the Jacobian J, the drop
    of the residual sum of squares on adding them is u' (F'F - F'J (J'J)^+ J'F)^+ u, u = F'r, and its
    F-ratio has a known law. With noise of unequal spread (``robust``) u has covariance F~' diag(r^2) F~,
    F~ the part of F orthogonal to J, and u' cov^-1 u is chi-square.
    """
    from scipy.special import chdtrc, fdtrc

    n, form = fit.n, fit.form
    count = int(min(300, max(n // 10, (n - form.freedom) // 4)))
    free = n - form.freedom - count
    if robust:  # a covariance estimated with many features bends the law of its own quadratic form
        count = min(count, n // 50)
    if count < 2 or free < 10:
        return 1.0
    rng = np.random.default_rng(seed)
    directions = rng.standard_normal((count, form.d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    offsets = rng.standard_normal(count) * (1.0 if form.bias else 0.3)
    features = np.asarray(form.activation(Z @ directions.T + offsets)) * fit.root_weight[:, None]
    residual = fit.residuals(theta)
    cross = fit.jacobian_product(theta, features)
    shadow = np.linalg.lstsq(hessian, cross, rcond=1e-12)[0]
    u = features.T @ residual
    if robust:
        rows = (features - fit.jacobian_times(theta, shadow)) * residual[:, None]
        value, vector = np.linalg.eigh(rows.T @ rows)
        kept = value > 1e-10 * value[-1]
        statistic = float(np.sum((vector[:, kept].T @ u) ** 2 / value[kept]))
        return float(chdtrc(int(kept.sum()), statistic))
    left = features.T @ features - cross.T @ shadow
    value, vector = np.linalg.eigh(left)
    kept = value > 1e-10 * value[-1]
    drop = float(np.sum((vector[:, kept].T @ u) ** 2 / value[kept]))
    rank = int(kept.sum())
    total = float(residual @ residual)
    remaining = max(total - drop, 1e-12 * total)
    return float(fdtrc(rank, free, (drop / rank) / (remaining / free)))
