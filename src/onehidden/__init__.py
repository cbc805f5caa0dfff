"""onehidden."""

from onehidden.network import OneHiddenNet

__version__ = "0.1.0"
__all__ = ["OneHiddenNet"]
