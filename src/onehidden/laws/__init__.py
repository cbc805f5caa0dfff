"""Input laws you know: sample, log-density, exact scores."""

from onehidden.laws.base import Law, ScoreFunction
from onehidden.laws.gaussian import Gaussian, GaussianMixture, standard_normal
from onehidden.laws.product import (
    GeneralizedGaussian,
    Laplace,
    Logistic,
    ProductLaw,
    Sech,
    StudentT,
    Uniform,
)
from onehidden.laws.transformed import Affine, FromLogDensity

__all__ = [
    "Affine",
    "FromLogDensity",
    "Gaussian",
    "GaussianMixture",
    "GeneralizedGaussian",
    "Laplace",
    "Law",
    "Logistic",
    "ProductLaw",
    "ScoreFunction",
    "Sech",
    "StudentT",
    "Uniform",
    "standard_normal",
]
