"""The law of y given the network's output as a SciPy distribution: probabilities and quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from onehidden.families.amounts import Gamma, Gaussian
from onehidden.families.counts import Poisson
from onehidden.families.family import Family, Level, PerRow, Rows
from onehidden.families.shares import Bernoulli, beside


def distribution(family: Family, eta: Rows, phi: Level = 1.0, trials: PerRow = None) -> Any:
    """The frozen distribution of y at eta; of a binomial that of the number of successes.

    Parameters
    ----------
    phi : dispersion, where the family has a free one. trials : of a binomial; one where None.
    """
    from scipy import stats

    mu = family.mean(eta)
    if isinstance(family, Gaussian):
        return stats.norm(mu, np.sqrt(phi))
    if isinstance(family, Gamma):
        return stats.gamma(1 / np.asarray(phi), scale=mu * phi)
    if isinstance(family, Poisson):
        if family.bend == 0:
            return stats.poisson(mu)
        shape = 1 / family.bend
        return stats.nbinom(shape, shape / (shape + mu))
    if isinstance(family, Bernoulli):
        return stats.bernoulli(mu) if trials is None else stats.binom(beside(trials, mu), mu)
    raise ValueError(f"the {family.name} family has no quantiles: its outputs are probabilities of classes")
