"""E[y S_m(x)] of the whole law, a component or a subspace: one mergeable pass, with standard errors."""

from onehidden.moments.accumulator import MomentAccumulator, ScoreMoments
from onehidden.moments.components import component_moments
from onehidden.moments.control import Control, ControlAccumulator
from onehidden.moments.in_subspace import Moment, contracted_fourth, cross, moment, moments_inside
from onehidden.moments.score_moments import score_moments
from onehidden.moments.score_protocol import Score
from onehidden.moments.streaming import ControlPass, MomentPass

__all__ = [
    "Control",
    "ControlAccumulator",
    "ControlPass",
    "Moment",
    "MomentAccumulator",
    "MomentPass",
    "Score",
    "ScoreMoments",
    "component_moments",
    "contracted_fourth",
    "cross",
    "moment",
    "moments_inside",
    "score_moments",
]
