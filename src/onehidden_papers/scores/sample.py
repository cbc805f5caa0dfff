"""The door of every estimator: a sample that can carry a score, and the coordinates to work in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from jaxtyping import Float, Int

from onehidden.data.arrays import flat_columns
from onehidden.refused import Refused
from onehidden.run import stream
from onehidden_papers.laws.base import as_points


def check_sample(X: npt.ArrayLike) -> Float[np.ndarray, "n d"]:
    """X as an (n, d) matrix of samples of a continuous law, or one sentence on why it is not."""
    X = as_points(X)
    n, d = X.shape
    if n < d + 2:
        raise Refused(f"a score of {d} inputs needs at least {d + 2} rows, got {n}")
    if len(flat := flat_columns(X)):
        raise Refused(f"column {flat[0]} of X is constant: it has no density; drop it")
    distinct = len(np.unique(X, axis=0))
    if distinct < max(d + 2, n / 2):
        raise Refused(
            f"X has {n} rows but only {distinct} distinct: a score needs a continuous law; drop duplicates"
        )
    if d == 0 or np.linalg.eigvalsh(np.atleast_2d(np.corrcoef(X.T)))[0] < 1e-10:
        raise Refused("the columns of X are linearly dependent: drop some or project first")
    return X


def check_bandwidth(bandwidth: str | float) -> None:
    """Refuse what is neither "auto" nor a positive number."""
    if bandwidth != "auto" and (isinstance(bandwidth, str) or not 0 < bandwidth < np.inf):
        raise ValueError(f"bandwidth must be 'auto' or a positive number, got {bandwidth!r}")


@dataclass(frozen=True)
class Coordinates:
    """z = (x - centre) @ matrix; directions go along with ``matrix.T @ V``."""

    centre: Float[np.ndarray, " d"]
    matrix: Float[np.ndarray, "d d"]

    def points(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
        return (X - self.centre) @ self.matrix

    def directions(self, V: Float[np.ndarray, "d r"]) -> Float[np.ndarray, "d r"]:
        return self.matrix.T @ V


def coordinates(X: Float[np.ndarray, "n d"], kind: str) -> Coordinates:
    """Where an isotropic kernel fits: ``full`` whitening, ``diagonal``, ``spherical`` or ``none``."""
    cov, eye = np.atleast_2d(np.cov(X.T)), np.eye(X.shape[1])
    matrix = {
        "none": lambda: eye,
        "spherical": lambda: eye / np.sqrt(np.trace(cov) / len(cov)),
        "diagonal": lambda: np.diag(1 / np.sqrt(np.diag(cov))),
        "full": lambda: np.linalg.inv(np.linalg.cholesky(cov)).T,
    }[kind]()
    return Coordinates(X.mean(axis=0), matrix)


def draw_rows(X: Float[np.ndarray, "n d"], limit: int, seed: int) -> Int[np.ndarray, " rows"]:
    """Sorted indices of at most ``limit`` rows, drawn without replacement."""
    if len(X) <= limit:
        return np.arange(len(X))
    return np.sort(stream(seed, "scores", "rows").choice(len(X), limit, replace=False))
