"""f, f', G, F, F_δ, L, P': pure functions of (parameters, moments or batch) whose minima are the truth."""

from onehidden.objectives.base import Objective
from onehidden.objectives.designed import GaussianDesigned, PairwiseQuartic, ScoreDesigned, unit_rows
from onehidden.objectives.losses import HermiteLoss, SquaredLoss
from onehidden.objectives.nonorthogonal import NonOrthogonal
from onehidden.objectives.polynomial import FromPolynomial
from onehidden.objectives.scoring import ProductScore
from onehidden.objectives.signal import kappa, require_signal, seeing_orders

__all__ = [
    "FromPolynomial",
    "GaussianDesigned",
    "HermiteLoss",
    "NonOrthogonal",
    "Objective",
    "PairwiseQuartic",
    "ProductScore",
    "ScoreDesigned",
    "SquaredLoss",
    "kappa",
    "require_signal",
    "seeing_orders",
    "unit_rows",
]
