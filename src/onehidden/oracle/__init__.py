"""recover_oracle(): a black box asked where its units switch, until nothing is left to ask."""

from onehidden.oracle.recover_oracle import recover_oracle

__all__ = ["recover_oracle"]
