"""E[y S_m(x)] as one streaming, mergeable pass, with control variates and standard errors."""

from onehidden.moments.accumulator import MomentAccumulator, ScoreMoments
from onehidden.moments.control import Control, ControlAccumulator
from onehidden.moments.score_moments import score_moments
from onehidden.moments.streaming import ControlPass, MomentPass

__all__ = [
    "Control",
    "ControlAccumulator",
    "ControlPass",
    "MomentAccumulator",
    "MomentPass",
    "ScoreMoments",
    "score_moments",
]
