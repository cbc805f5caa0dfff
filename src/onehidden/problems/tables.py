"""Real inputs: tables that are installed with the plain dependencies, seen as laws that can be sampled.

A table has the rows it has: a sample is drawn without replacement and never larger than the table. Columns
are standardised and otherwise left alone: binary, rounded to a grid, nearly collinear, as users have them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from onehidden.streams import stream

_WINDOW = 4  # side of the square windows cut from pictures


@dataclass(frozen=True)
class RealInputs:
    """The rows of a table as a source of inputs.

    Attributes
    ----------
    title : what it is, and where it comes from.
    n_rows, n_inputs : its shape after reading.
    read : reads the raw (n_rows, n_inputs) numbers.
    tags : what is awkward about it.
    """

    title: str
    n_rows: int
    n_inputs: int
    read: Callable[[], np.ndarray] = field(repr=False)
    tags: tuple[str, ...] = ()

    @cached_property
    def rows(self) -> np.ndarray:
        """(n, d) all rows in the table's own order, every column with mean 0 and variance 1."""
        raw = np.asarray(self.read(), dtype=float)
        if raw.shape != (self.n_rows, self.n_inputs):
            raise ValueError(
                f"{self.title}: expected {self.n_rows} rows of {self.n_inputs} columns, the installed copy "
                f"has shape {raw.shape}; install the package's released wheel"
            )
        return (raw - raw.mean(axis=0)) / raw.std(axis=0)

    def sample(self, n: int, seed: int) -> np.ndarray:
        """n different rows in the table's order, (n, d); all of them when n is the number of rows."""
        if n > self.n_rows:
            raise ValueError(
                f"{self.title} has {self.n_rows} rows, {n} were asked for: a real table cannot be extended"
            )
        kept = stream(seed, "problem", "rows of a table").choice(self.n_rows, n, replace=False)
        return self.rows[np.sort(kept)]


def _sklearn(name: str) -> np.ndarray:
    from sklearn import datasets

    return getattr(datasets, f"load_{name}")().data


def _digits() -> np.ndarray:
    """The first 30 principal components of 8 × 8 images of handwritten digits."""
    pixels = _sklearn("digits")
    centred = pixels - pixels.mean(axis=0)
    left, values, right = np.linalg.svd(centred, full_matrices=False)
    # The sign of a component is the routine's whim: make its largest loading positive.
    largest = np.abs(right[:30]).argmax(axis=1)
    return left[:, :30] * values[:30] * np.sign(right[np.arange(30), largest])


def _from_matplotlib(name: str) -> str:
    from matplotlib import cbook

    return str(cbook.get_sample_data(name, asfileobj=False))


def _google() -> np.ndarray:
    prices = np.load(_from_matplotlib("goog.npz"))["price_data"]
    return np.column_stack([prices[name] for name in ("open", "high", "low", "close", "volume")])


def _eeg() -> np.ndarray:
    return np.fromfile(_from_matplotlib("eeg.dat"), dtype=float).reshape(800, 4)


def _terrain() -> np.ndarray:
    return _windows(np.load(_from_matplotlib("jacksboro_fault_dem.npz"))["elevation"])


def _photo() -> np.ndarray:
    from sklearn.datasets import load_sample_image

    return _windows(np.asarray(load_sample_image("china.jpg"), dtype=float).mean(axis=2))


def _windows(picture: np.ndarray) -> np.ndarray:
    """(m, 16) the disjoint 4 × 4 windows of a picture, row by row."""
    high, wide = (size // _WINDOW for size in picture.shape)
    cut = picture[: high * _WINDOW, : wide * _WINDOW].reshape(high, _WINDOW, wide, _WINDOW)
    return cut.transpose(0, 2, 1, 3).reshape(high * wide, _WINDOW**2)


TABLES = {
    "diabetes": RealInputs("diabetes patients (scikit-learn)", 442, 10, lambda: _sklearn("diabetes"),
                           ("binary column", "collinear")),
    "wine": RealInputs("chemistry of wines (scikit-learn)", 178, 13, lambda: _sklearn("wine"),
                       ("few rows", "clusters")),
    "breast-cancer": RealInputs("cell nuclei (scikit-learn's breast cancer)", 569, 30,
                                lambda: _sklearn("breast_cancer"), ("few rows", "collinear", "heavy tails")),
    "digits": RealInputs("handwritten digits, 30 principal components (scikit-learn)", 1797, 30, _digits,
                         ("clusters",)),
    "iris": RealInputs("iris flowers (scikit-learn)", 150, 4, lambda: _sklearn("iris"),
                       ("few rows", "clusters", "rounded")),
    "google": RealInputs("daily prices and volume of a share (matplotlib)", 1047, 5, _google,
                         ("collinear", "dependent rows")),
    "eeg": RealInputs("four channels of an electroencephalogram (matplotlib)", 800, 4, _eeg,
                      ("dependent rows",)),
    "terrain": RealInputs("4 × 4 windows of an elevation map (matplotlib)", 8600, 16, _terrain,
                          ("collinear", "rounded", "dependent rows")),
    "photo": RealInputs("4 × 4 windows of a photograph (scikit-learn)", 16_960, 16, _photo,
                        ("collinear", "heavy tails", "bounded")),
}  # fmt: skip
