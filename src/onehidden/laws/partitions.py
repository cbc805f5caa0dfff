"""Set partitions: the combinatorics that turns derivatives of log f into derivatives of f."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Float

Partition = tuple[tuple[int, ...], ...]
_LETTERS = "abcdefghijklm"


@lru_cache(maxsize=32)
def set_partitions(order: int, largest: int | None = None) -> tuple[Partition, ...]:
    """All partitions of {0, …, order-1} into blocks of at most ``largest`` elements."""
    if order == 0:
        return ((),)
    cap = order if largest is None else largest
    grown: list[Partition] = []
    last = order - 1
    for smaller in set_partitions(order - 1, cap):
        for i, block in enumerate(smaller):
            if len(block) < cap:
                grown.append((*smaller[:i], (*block, last), *smaller[i + 1 :]))
        grown.append((*smaller, (last,)))
    return tuple(grown)


def score_tensor(G: Sequence[Float[np.ndarray, "n ..."] | None]) -> Float[np.ndarray, "n ..."]:
    """S_m from G_1, …, G_m with every axis open: G_j is (n, r, …, r) or None for zero.

    (8) of [GMOV] with the symmetrisation written out: (-1)^m S_m is the sum over set partitions of the m
    axes of the product of G_|block| on each block (complete Bell polynomial).
    """
    order = len(G)
    axes = _LETTERS[:order]
    total: np.ndarray | None = None
    for partition in set_partitions(order):
        factors = [factor for block in partition if (factor := G[len(block) - 1]) is not None]
        if len(factors) < len(partition):
            continue
        inputs = ",".join("z" + "".join(axes[i] for i in block) for block in partition)
        term = np.einsum(f"{inputs}->z{axes}", *factors, optimize=False)
        total = term if total is None else total + term
    if total is None:
        raise ValueError("a score needs G_1: pass an array of zeros for a flat log-density")
    return total if order % 2 == 0 else -total


def score_entry(
    G: Sequence[Float[np.ndarray, "n ..."] | None], index: Sequence[int]
) -> Float[np.ndarray, " n"]:
    """One entry (i_1, …, i_m) of S_m, (n,): a polynomial in entries of the G_j, no tensor of order m."""
    order = len(index)
    total = np.zeros(_rows(G))
    for partition in set_partitions(order):
        term: np.ndarray | float = 1.0
        for block in partition:
            factor = G[len(block) - 1]
            if factor is None:
                term = 0.0
                break
            term = term * factor[(slice(None), *(index[i] for i in block))]
        total = total + term
    return total if order % 2 == 0 else -total


def _rows(G: Sequence[np.ndarray | None]) -> int:
    return max(len(factor) for factor in G if factor is not None)


def chain(outer: Callable[[int], np.ndarray], inner: Sequence[np.ndarray], order: int) -> list[np.ndarray]:
    """Derivatives 1…order of phi(Q(x)) where only the first two derivatives of Q are not zero.

    Parameters
    ----------
    outer : k -> phi^(k)(Q), (n,).
    inner : Q_1 (n, r) and Q_2 (n, r, r).
    """
    result = []
    for j in range(1, order + 1):
        axes = _LETTERS[:j]
        total = np.zeros((len(inner[0]),) + (inner[0].shape[1],) * j)
        for partition in set_partitions(j, 2):
            inputs = ",".join("z" + "".join(axes[i] for i in block) for block in partition)
            factors = [inner[len(block) - 1] for block in partition]
            total += np.einsum(f"z,{inputs}->z{axes}", outer(len(partition)), *factors, optimize=False)
        result.append(total)
    return result
