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
from onehidden.laws.transformed import Affine, Banana, Elliptical, FromLogDensity, MultivariateT

__all__ = [
    "Affine",
    "Banana",
    "Elliptical",
    "FromLogDensity",
    "Gaussian",
    "GaussianMixture",
    "GeneralizedGaussian",
    "Laplace",
    "Law",
    "Logistic",
    "MultivariateT",
    "ProductLaw",
    "ScoreFunction",
    "Sech",
    "StudentT",
    "Uniform",
    "standard_normal",
]
