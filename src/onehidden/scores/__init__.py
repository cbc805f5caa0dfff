"""Input laws you estimate: the same interface as a law."""

from onehidden.scores.validity import validity

__all__ = ["validity"]
