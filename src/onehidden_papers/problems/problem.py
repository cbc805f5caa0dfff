"""A problem: an input law, a teacher drawn from a seed, and how hard it is meant to be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from onehidden import activations
from onehidden.network import OneHiddenNet
from onehidden.run import derived_seed, stream

TeacherRows = Callable[[np.random.Generator, int, int], np.ndarray]
TeacherBiases = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def scattered(rng: np.random.Generator, weights: np.ndarray) -> np.ndarray:
    """Biases of a normal law with standard deviation ½."""
    return 0.5 * rng.standard_normal(len(weights))


class Inputs(Protocol):
    """Where inputs come from: a law or a real table."""

    def sample(self, n: int, seed: int) -> np.ndarray: ...


@dataclass(frozen=True)
class Problem:
    """Samples of a known network.

    Attributes
    ----------
    name, title : str
        How it is asked for, and what it is.
    law : Inputs
        Law of the inputs; anything with ``sample(n, seed)``, a real table among them.
    n_inputs, n_hidden : int
        d and k.
    activation : str
        Name of g.
    rows : TeacherRows
        Draws the (k, d) matrix of rows.
    signs : bool
        Whether outputs have both signs (else all 1).
    bias : bool
        Whether units have biases (and the network an intercept).
    noise : float
        Standard deviation of the noise as a share of that of y.
    n : int
        A sample size at which recovery is expected to be exact; of a real table, all its rows.
    tags : tuple of str
        What makes it hard; what the other fields say of that is added.
    biases : TeacherBiases
        Draws the biases once the rows are known.
    """

    name: str
    title: str
    law: Inputs = field(repr=False)
    n_inputs: int
    n_hidden: int
    activation: str
    rows: TeacherRows = field(repr=False)
    n: int
    signs: bool = False
    bias: bool = False
    noise: float = 0.0
    tags: tuple[str, ...] = ()
    biases: TeacherBiases = field(default=scattered, repr=False)

    def __post_init__(self) -> None:
        seen = {
            "k < d": self.n_hidden < self.n_inputs,
            "k > d": self.n_hidden > self.n_inputs,
            "biases": self.bias,
            "mixed signs": self.signs,
            "noise": self.noise > 0,
            "not identifiable": activations.get(self.activation).polynomial,
        }
        tags = [*(tag for tag, holds in seen.items() if holds), *self.tags]
        object.__setattr__(self, "tags", tuple(dict.fromkeys(tags)))

    def teacher(self, seed: int) -> OneHiddenNet:
        """Return the true network of a seed.

        Parameters
        ----------
        seed : int
            Seed of the network.

        Returns
        -------
        OneHiddenNet
            The network.
        """
        rng = stream(seed, "problem", self.name, "teacher")
        weights = self.rows(rng, self.n_hidden, self.n_inputs)
        output = rng.choice([-1.0, 1.0], self.n_hidden) if self.signs else np.ones(self.n_hidden)
        if self.signs and self.n_hidden > 1:
            output[:2] = 1.0, -1.0  # both signs, whatever the draw
        bias = self.biases(rng, weights) if self.bias else None
        return OneHiddenNet(
            weights, output, bias, 1.5 if self.bias else 0.0, activations.get(self.activation)
        )

    def sample(self, n: int | None = None, seed: int = 0) -> tuple[np.ndarray, np.ndarray, OneHiddenNet]:
        """Draw samples of a network.

        Parameters
        ----------
        n : int, optional
            Number of rows; the problem's own by default.
        seed : int
            Seed of the network, the rows and the noise.

        Returns
        -------
        X, y, teacher : ndarray of shape (n, d), ndarray of shape (n,), OneHiddenNet
            Inputs, target and the true network.
        """
        size = self.n if n is None else n
        if size < 1:
            raise ValueError(f"a sample needs at least one row, got n = {size}")
        teacher = self.teacher(seed)
        X = self.law.sample(size, derived_seed(seed, "problem", self.name, "inputs"))
        y = teacher.predict(X)
        if self.noise:
            rng = stream(seed, "problem", self.name, "noise")
            y = y + self.noise * y.std() * rng.standard_normal(size)
        return X, y, teacher


def orthonormal(rng: np.random.Generator, k: int, d: int) -> np.ndarray:
    """Draw k orthonormal rows in random position; a random rotation when k = d."""
    if k > d:
        raise ValueError(f"{d} inputs have room for {d} orthonormal rows at most, got {k} units")
    return np.linalg.qr(rng.standard_normal((d, k)))[0].T


def conditioned(kappa: float, scale: float | None = None) -> TeacherRows:
    """Rows U' diag(σ) Q' with random orthonormal U, Q and σ spread evenly from 1 to kappa, times ``scale``.

    The scale is 1/√kappa unless given, so that rows have a length near 1.
    """
    factor = 1 / np.sqrt(kappa) if scale is None else scale

    def draw(rng: np.random.Generator, k: int, d: int) -> np.ndarray:
        directions = orthonormal(rng, k, d)
        mixing = np.linalg.qr(rng.standard_normal((k, k)))[0]
        return mixing.T @ (factor * np.linspace(1.0, kappa, k)[:, None] * directions)

    return draw


def conditioned_teacher(
    d: int, k: int, kappa: float, activation: str, random: np.random.Generator, *, signed: bool
) -> OneHiddenNet:
    """Return the teachers of [ZSJBD]: W* = U diag(σ) Q' with σ evenly spaced from 1 to κ, v = ±1 or 1."""
    rows = conditioned(kappa, scale=1.0)(random, k, d)
    output = random.choice([-1.0, 1.0], k) if signed else np.ones(k)
    return OneHiddenNet(rows, output, activation=activation)


def spread(rng: np.random.Generator, k: int, d: int) -> np.ndarray:
    """Rows of unit norm in independent random directions."""
    rows = rng.standard_normal((k, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
