"""f, f', G, F, F_δ, L, P': pure functions of (parameters, moments or batch) whose minima are the truth."""

from onehidden_papers.objectives.base import Objective, kappa, unit_rows
from onehidden_papers.objectives.designed import (
    GaussianDesigned,
    NonOrthogonal,
    PairwiseQuartic,
    ScoreDesigned,
)
from onehidden_papers.objectives.losses import HermiteLoss, SquaredLoss

__all__ = [
    "GaussianDesigned",
    "HermiteLoss",
    "NonOrthogonal",
    "Objective",
    "PairwiseQuartic",
    "ScoreDesigned",
    "SquaredLoss",
    "kappa",
    "unit_rows",
]
