"""Input laws you know: sample, log-density, exact scores."""

from onehidden.laws.base import Law, ScoreFunction, require_valid_orders
from onehidden.laws.gaussian import Gaussian, GaussianMixture
from onehidden.laws.product import (
    GeneralizedGaussian,
    Laplace,
    Logistic,
    ProductLaw,
    Sech,
    StudentT,
    Uniform,
)
from onehidden.laws.transformed import Affine, Elliptical, FromLogDensity, MultivariateT

__all__ = [
    "Affine",
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
    "require_valid_orders",
]
