"""Input laws you know: sample, log-density, exact scores."""

from onehidden.laws.gaussian import Gaussian

__all__ = ["Gaussian"]
