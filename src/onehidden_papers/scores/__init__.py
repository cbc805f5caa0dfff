"""Input laws you estimate: the same interface as a law."""

from onehidden_papers.scores.local_likelihood import LocalLikelihood
from onehidden_papers.scores.selection import score_matching, select, validity
from onehidden_papers.scores.structured import (
    GaussianScore,
    IndependentScore,
    KernelDensityScore,
    MixtureScore,
)

__all__ = [
    "GaussianScore",
    "IndependentScore",
    "KernelDensityScore",
    "LocalLikelihood",
    "MixtureScore",
    "score_matching",
    "select",
    "validity",
]
