"""recover_oracle(): the hidden layer of a black box, from queries that it chooses."""

from onehidden.oracle.recover_oracle import recover_oracle

__all__ = ["recover_oracle"]
