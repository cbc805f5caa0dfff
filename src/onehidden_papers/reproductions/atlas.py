"""The atlas: κ_m = E[g^(m)(t)] over activations, laws of t = ⟨a, x⟩ and orders 1–4, by quadrature."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from onehidden import activations
from onehidden.laws import Gaussian, GaussianMixture, Laplace, Law, Logistic, Sech, StudentT, Uniform
from onehidden.machine import in_double
from onehidden_papers.reproductions.record import Table


def mixture(centre: float) -> GaussianMixture:
    """½N(c, 1) + ½N(−c, 1) on the line."""
    return GaussianMixture([0.5, 0.5], [[centre], [-centre]], np.eye(1))


LAWS: dict[str, Law] = {
    "normal": Gaussian([0.0], np.eye(1)),
    "normal, mean ½": Gaussian([0.5], np.eye(1)),
    "logistic": Logistic(1, float(np.sqrt(3) / np.pi)),
    "sech": Sech(1),
    "Student t, df 5": StudentT(1, 5.0),
    "mixture ±½": mixture(0.5),
    "mixture ±1": mixture(1.0),
    "mixture ±√3": mixture(float(np.sqrt(3))),
    "mixture .3 N(1) + .7 N(−½)": GaussianMixture([0.3, 0.7], [[1.0], [-0.5]], np.eye(1)),
    "Laplace": Laplace(1),
    "uniform": Uniform(1),
}
# The rows of the stored page; an activation that is new to the library does not change them.
ACTIVATIONS = (
    "relu", "leaky_relu", "squared_relu", "cubed_relu", "sigmoid", "tanh", "erf", "softplus", "gelu", "abs",
    "quadratic", "linear",
)  # fmt: skip


@lru_cache(maxsize=1)
def _line(reach: float = 400.0, panels: int = 800, nodes: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Gauss–Legendre panels on both sides of zero, where activations have their kinks, narrow near it."""
    node, weight = np.polynomial.legendre.leggauss(nodes)
    edges = np.sinh(np.linspace(0, np.arcsinh(reach), panels + 1))
    half, centre = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    right = (centre[:, None] + half[:, None] * node).ravel()
    weights = (half[:, None] * weight).ravel()
    return np.concatenate([-right[::-1], right]), np.concatenate([weights[::-1], weights])


def weights(law: Law, order: int) -> np.ndarray | None:
    """f(t) s_m(t) at the nodes times their weights; None where the law has no score of that order."""
    if order > law.valid_order:
        return None
    t, weight = _line()
    log_density = law.log_density(t[:, None])
    found = np.zeros(len(t))
    keep = log_density > -700.0
    found[keep] = weight[keep] * np.exp(log_density[keep]) * law.score(t[keep, None], order).ravel()
    return found


@in_double
def values(activation: str) -> np.ndarray:
    """Return g at the nodes."""
    return activations.get(activation)(_line()[0])


def atlas(zero: float = 1e-9) -> Table:
    """One row a law and activation, one column an order: E[g^(m)(t)] = E[g(t) s_m(t)]."""
    rows, orders = [], (1, 2, 3, 4)
    for law_name, law in LAWS.items():
        against = [weights(law, m) for m in orders]
        for name in ACTIVATIONS:
            found = [None if one is None else float(one @ values(name)) for one in against]
            cells = ["–" if v is None else "**0**" if abs(v) <= zero else float(f"{v:.4g}") for v in found]
            blind = [str(m) for m, v in zip(orders, found, strict=True) if v is not None and abs(v) <= zero]
            rows.append((law_name, name, *cells, ", ".join(blind) or "none"))
    return Table(
        "κ_m over laws, activations and orders",
        ("law of t", "activation", *(f"κ_{m}" for m in orders), "blind orders"),
        tuple(rows),
        (
            "Under a symmetric law an odd activation has no even κ_m and an even part no odd one; ReLU, "
            "leaky ReLU, softplus and GELU are half linear and half even, so every odd order from 3 on "
            "is blind.",
            "Mixture ±c and ReLU: κ_4 = (c² − 1)φ(c) is zero at c = 1 and changes sign there for no reason "
            "of symmetry; so does κ_3 of tanh between c = 1 and c = √3.",
            "A mean of ½ or unequal weights break the symmetry: orders that were blind see.",
        ),
    )
