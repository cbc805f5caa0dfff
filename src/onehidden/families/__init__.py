"""What y is, given the network's output: normal, counts, shares, positive amounts, classes."""

from __future__ import annotations

from onehidden.families.amounts import Gamma, Gaussian
from onehidden.families.choosing import get, names
from onehidden.families.counts import NegativeBinomial, Poisson
from onehidden.families.dispersion import Dispersion, dispersion_check, dispersion_test
from onehidden.families.family import Family, Working
from onehidden.families.noticing import Notice, notice
from onehidden.families.residuals import Residuals, residuals
from onehidden.families.shares import Bernoulli, Binomial
from onehidden.families.softmax import Softmax
from onehidden.families.targets import check_target, classes_of

__all__ = [
    "Bernoulli",
    "Binomial",
    "Dispersion",
    "Family",
    "Gamma",
    "Gaussian",
    "NegativeBinomial",
    "Notice",
    "Poisson",
    "Residuals",
    "Softmax",
    "Working",
    "check_target",
    "classes_of",
    "dispersion_check",
    "dispersion_test",
    "get",
    "names",
    "notice",
    "residuals",
]
