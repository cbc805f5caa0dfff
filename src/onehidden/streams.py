"""Random streams by name: what draws for one purpose never shares numbers with what draws for another.

A stream is hashed from a seed and the words that say what it is for, so that a teacher of seed 3, the samples
of seed 3 and the solver of seed 3 are independent of each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

Seed = int | Sequence[int]


def stream(seed: Seed, *name: str | int) -> np.random.Generator:
    """The generator of this seed and name: ``stream(0, "restart", 3)``; the same words, the same numbers.

    At least one word is needed: a stream without a name is one that somebody else draws from, too.
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(_entropy(seed, name))))


def derived_seed(seed: Seed, *name: str | int) -> int:
    """A whole number below 2^31 of this seed and name, for libraries that take a seed of their own."""
    return int(np.random.SeedSequence(_entropy(seed, name)).generate_state(1, np.uint32)[0] >> 1)


def _entropy(seed: Seed, name: tuple[str | int, ...]) -> list[int]:
    if not name:
        raise ValueError("a random stream needs a name that says what it is for")
    words = hashlib.sha256("/".join(f"{type(word).__name__}:{word}" for word in name).encode()).digest()[:16]
    numbers = [int(s) for s in seed] if isinstance(seed, Sequence) else [int(seed)]
    # The length keeps (1, 2) + name apart from (1,) + another name that begins with the same word.
    return [len(numbers), *numbers, *np.frombuffer(words, np.uint32).tolist()]
