"""E[y S_m(x)] of the whole law, a component or a subspace: one mergeable pass, with standard errors."""

from onehidden_papers.moments.passes import MomentPass, ScoreMoments, score_moments

__all__ = ["MomentPass", "ScoreMoments", "score_moments"]
