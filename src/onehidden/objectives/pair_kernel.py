"""E[g(⟨u,x⟩) h(⟨v,x⟩)] for x ~ N(0, I) and all pairs of rows: the closed form behind squared losses."""

from __future__ import annotations

import numpy as np

from onehidden.activations import Activation

_ANGLES, _HERMITE_NODES = 16, 100


def pair_kernel(g: Activation, U: np.ndarray, h: Activation, V: np.ndarray) -> np.ndarray:
    """(k, l) matrix of E[g(⟨u_i,x⟩) h(⟨v_j,x⟩)].

    Homogeneous g and h: exact in polar coordinates of the plane of (u, v), where the integrand is a
    trigonometric polynomial between its kinks. Smooth g and h: a tensor Gauss–Hermite rule.
    """
    if g.homogeneity is not None and h.homogeneity is not None:
        return _polar(g, U, h, V)
    if g.kinked or h.kinked:
        raise ValueError(f"no closed form for the pair {g.name}, {h.name}: both homogeneous or both smooth")
    return _gauss_hermite(g, U, h, V)


def _polar(g: Activation, U: np.ndarray, h: Activation, V: np.ndarray) -> np.ndarray:
    assert g.homogeneity is not None
    assert h.homogeneity is not None
    nu, nv = np.linalg.norm(U, axis=1), np.linalg.norm(V, axis=1)
    cosine = np.clip(U @ V.T / np.maximum(np.outer(nu, nv), np.finfo(float).tiny), -1, 1)
    theta = np.arccos(cosine)
    # Kinks of g(cos φ) and h(cos(φ − θ)): four points on the circle, hence four arcs.
    quarter = np.full_like(theta, np.pi / 2)
    edges = np.sort(
        np.stack([-quarter, quarter, theta - quarter, theta + quarter], axis=-1) % (2 * np.pi), axis=-1
    )
    edges = np.concatenate([edges, edges[..., :1] + 2 * np.pi], axis=-1)
    t, w = np.polynomial.legendre.leggauss(_ANGLES)
    half = np.diff(edges, axis=-1)[..., None] / 2
    phi = edges[..., :-1, None] + half * (t + 1)
    angular = np.sum(half * w * g(np.cos(phi)) * h(np.cos(phi - theta[..., None, None])), axis=(-1, -2))
    p, q = g.homogeneity, h.homogeneity
    # E[r^{p+q}] for r² ~ χ²_2 is 2^{(p+q)/2} Γ(1 + (p+q)/2).
    from scipy.special import gamma

    radial = 2 ** ((p + q) / 2) * gamma(1 + (p + q) / 2) / (2 * np.pi)
    return radial * np.outer(nu**p, nv**q) * angular


def _gauss_hermite(g: Activation, U: np.ndarray, h: Activation, V: np.ndarray) -> np.ndarray:
    t, w = np.polynomial.hermite_e.hermegauss(_HERMITE_NODES)
    w = w / np.sqrt(2 * np.pi)
    nu, nv = np.linalg.norm(U, axis=1), np.linalg.norm(V, axis=1)
    cosine = np.clip(U @ V.T / np.maximum(np.outer(nu, nv), np.finfo(float).tiny), -1, 1)
    left = g(np.outer(nu, t)) * w  # (k, nodes)
    out = np.empty(cosine.shape)
    for i in range(len(U)):
        rho = cosine[i][:, None, None]
        second = rho * t[None, :, None] + np.sqrt(np.maximum(1 - rho**2, 0)) * t[None, None, :]
        out[i] = np.einsum("a,jab,b->j", left[i], h(nv[:, None, None] * second), w)
    return out
