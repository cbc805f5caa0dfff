"""Input laws you know: sample, log-density, exact scores."""

from onehidden_papers.laws.base import Law, ScoreFunction
from onehidden_papers.laws.gaussian import Gaussian, GaussianMixture, standard_normal
from onehidden_papers.laws.product import (
    GeneralizedGaussian,
    Laplace,
    Logistic,
    ProductLaw,
    Sech,
    StudentT,
    Uniform,
)
from onehidden_papers.laws.transformed import Affine, FromLogDensity

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
