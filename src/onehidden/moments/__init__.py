"""E[y S_m(x)] of the whole law, a component or a subspace: one mergeable pass, with standard errors."""

from onehidden.moments.accumulator import ScoreMoments
from onehidden.moments.streaming import MomentPass, score_moments

__all__ = ["MomentPass", "ScoreMoments", "score_moments"]
