"""The input laws of the catalogue by name, each for any number of inputs."""

from __future__ import annotations

from functools import lru_cache
from math import pi, sqrt

import numpy as np

from onehidden import laws
from onehidden.laws import Law
from onehidden.streams import stream


def correlated(d: int, condition: float, seed: int = 7) -> laws.Gaussian:
    """A Gaussian of that condition number, with a mean that is not zero."""
    rng = stream(seed, "problem", "correlated inputs")
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return laws.Gaussian(rng.standard_normal(d), (axes * np.geomspace(1, condition, d)) @ axes.T)


def rotated(law: Law, seed: int = 11) -> laws.Affine:
    """The law in a random rotation: independent components along axes that are not the coordinates'."""
    d, rng = law.n_inputs, stream(seed, "problem", "rotated inputs")
    return laws.Affine(law, np.linalg.qr(rng.standard_normal((d, d)))[0])


# Product laws have unit variance; the mixture is ½N(1, I) + ½N(-1, I), the papers' own.
LAWS = {
    "gaussian": (laws.standard_normal, "standard Gaussian inputs", ()),
    "correlated": (
        lambda d: correlated(d, 10.0),
        "Gaussian inputs of condition 10 and non-zero mean",
        ("correlated inputs", "not centred"),
    ),
    "mixture": (
        lambda d: laws.GaussianMixture([0.5, 0.5], [np.ones(d), -np.ones(d)], np.eye(d)),
        "mixture of N(1, I) and N(-1, I)",
        ("two clusters",),
    ),
    "laplace": (lambda d: laws.Laplace(d, 1 / sqrt(2)), "Laplace inputs", ("no smooth score",)),
    "logistic": (lambda d: laws.Logistic(d, sqrt(3) / pi), "logistic inputs", ()),
    "student5": (lambda d: laws.StudentT(d, 5.0, sqrt(3 / 5)), "Student t inputs, df 5", ("heavy tails",)),
    "uniform": (lambda d: laws.Uniform(d, sqrt(3)), "uniform inputs", ("no smooth score", "bounded")),
    "rotated-laplace": (
        lambda d: rotated(laws.Laplace(d, 1 / sqrt(2))),
        "Laplace inputs along rotated axes",
        ("no smooth score", "rotated product"),
    ),
    "rotated-uniform": (
        lambda d: rotated(laws.Uniform(d, sqrt(3))),
        "uniform inputs along rotated axes",
        ("no smooth score", "rotated product", "bounded"),
    ),
    "banana": (
        lambda d: laws.Banana(d, 0.5, max(d // 2, 1)),
        "Gaussian pairs bent by a parabola",
        ("dependent inputs",),
    ),
}


@lru_cache(maxsize=64)
def input_law(name: str, d: int) -> Law:
    """The law of that name for d inputs."""
    if name not in LAWS:
        raise ValueError(f"unknown input law {name!r}: choose one of {', '.join(LAWS)}")
    return LAWS[name][0](d)
