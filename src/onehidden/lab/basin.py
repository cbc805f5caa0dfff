"""How far from the truth descent still returns to it: the basin, found by experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from onehidden.lab.convexity import empirical_hessian
from onehidden.lab.gradient import descend
from onehidden.network import OneHiddenNet
from onehidden.streams import stream

RADII = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)


@dataclass(frozen=True)
class Basin:
    """Shares of random displacements, by radius |W - W*|_F / σ_k.

    Attributes
    ----------
    radii : the radii tried.
    convex : share at which the Hessian on the data was positive definite.
    returned : share from which gradient descent ended nearer than a tenth of where it began, still falling.
    convex_radius, radius : the largest radius up to which every displacement was convex, returned (0: none).
    """

    radii: tuple[float, ...]
    convex: tuple[float, ...]
    returned: tuple[float, ...]
    convex_radius: float
    radius: float


def basin(
    network: OneHiddenNet,
    X: npt.ArrayLike,
    *,
    radii: Sequence[float] = RADII,
    trials: int = 5,
    steps: int = 3000,
    seed: int = 0,
) -> Basin:
    """Displace the weights at random, look at the curvature there, and descend on noise-free data."""
    if network.n_hidden > network.n_inputs:
        raise ValueError(
            f"radii are in units of σ_k: {network.n_hidden} units exceed {network.n_inputs} inputs"
        )
    X = np.asarray(X, float)
    y = network.predict(X)
    random = stream(seed, "basin")
    g, truth = network.activation, network.weights
    unit = float(np.linalg.svd(truth, compute_uv=False)[-1])
    convex, returned = [], []
    for radius in radii:
        good, back = 0, 0
        for _ in range(trials):
            move = random.standard_normal(truth.shape)
            start = truth + radius * unit * move / np.linalg.norm(move)
            displaced = OneHiddenNet(start, network.output, network.bias, network.intercept, g)
            spectrum = np.linalg.eigvalsh(empirical_hessian(displaced, X, y))
            good += bool(spectrum[0] > 0)
            path = descend(
                X,
                y,
                start,
                network.output,
                fn=g.fn,
                slope=g.slope,
                # The curvature changes on the way: twice the largest eigenvalue here keeps the step stable.
                smoothness=2 * float(spectrum[-1]),
                bias=network.bias,
                intercept=network.intercept,
                truth=truth,
                steps=steps,
            )
            back += bool(path.distances[-1] < 0.1 * path.distances[0])
        convex.append(good / trials)
        returned.append(back / trials)
    return Basin(
        tuple(float(r) for r in radii),
        tuple(convex),
        tuple(returned),
        _largest(radii, convex),
        _largest(radii, returned),
    )


def _largest(radii: Sequence[float], shares: list[float]) -> float:
    best = 0.0
    for radius, share in zip(radii, shares, strict=True):
        if share < 1:
            break
        best = float(radius)
    return best
