"""Input laws you estimate: the same interface as a law."""

from onehidden.scores.independent import IndependentScore
from onehidden.scores.local_fallback import Diagnostics
from onehidden.scores.local_likelihood import LocalLikelihood
from onehidden.scores.selection import Candidate, score_matching, select
from onehidden.scores.structured import GaussianScore, KernelDensityScore, MixtureScore
from onehidden.scores.validity import validity

__all__ = [
    "Candidate",
    "Diagnostics",
    "GaussianScore",
    "IndependentScore",
    "KernelDensityScore",
    "LocalLikelihood",
    "MixtureScore",
    "score_matching",
    "select",
    "validity",
]
