"""The catalogue: a few problems by hand, then a grid of law × activation × structure, and real tables.

``LAW-ACTIVATION-STRUCTURE`` has the structure's own size; ``LAW-ACTIVATION-STRUCTURE-DxK`` has d = D inputs
and k = K units. ``TABLE-ACTIVATION-K`` plants K units with biases in a real table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, lru_cache
from math import ceil, log, log2, pi, sqrt

import jax
import jax.numpy as jnp
import numpy as np

from onehidden import activations
from onehidden.run import stream
from onehidden_papers import laws
from onehidden_papers.laws import Law
from onehidden_papers.laws import standard_normal as standard
from onehidden_papers.problems.problem import (
    Problem,
    TeacherBiases,
    TeacherRows,
    conditioned,
    orthonormal,
    spread,
)


@dataclass(frozen=True)
class RealInputs:
    """The rows of a table, installed with the plain dependencies, as a law that can be sampled.

    A sample is drawn without replacement and never larger than the table. Columns are standardised and
    otherwise left alone: binary, rounded to a grid, nearly collinear, as users have them.
    """

    title: str  # what it is, and where it comes from
    n_rows: int  # after reading
    n_inputs: int
    read: Callable[[], np.ndarray] = field(repr=False)  # the raw (n_rows, n_inputs) numbers
    tags: tuple[str, ...] = ()  # what is awkward about it

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
        """Draw n different rows in the table's order, (n, d); all of them when n is the number of rows."""
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
    """Return the first 30 principal components of 8 × 8 images of handwritten digits."""
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


def _photo() -> np.ndarray:
    from sklearn.datasets import load_sample_image

    return _windows(np.asarray(load_sample_image("china.jpg"), dtype=float).mean(axis=2))


def _windows(picture: np.ndarray, side: int = 4) -> np.ndarray:
    """(m, 16) the disjoint 4 × 4 windows of a picture, row by row."""
    high, wide = (size // side for size in picture.shape)
    cut = picture[: high * side, : wide * side].reshape(high, side, wide, side)
    return cut.transpose(0, 2, 1, 3).reshape(high * wide, side**2)


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
    "eeg": RealInputs("four channels of an electroencephalogram (matplotlib)", 800, 4,
                      lambda: np.fromfile(_from_matplotlib("eeg.dat"), dtype=float).reshape(800, 4),
                      ("dependent rows",)),
    "terrain": RealInputs("4 × 4 windows of an elevation map (matplotlib)", 8600, 16,
                          lambda: _windows(np.load(_from_matplotlib("jacksboro_fault_dem.npz"))["elevation"]),
                          ("collinear", "rounded", "dependent rows")),
    "photo": RealInputs("4 × 4 windows of a photograph (scikit-learn)", 16_960, 16, _photo,
                        ("collinear", "heavy tails", "bounded")),
}  # fmt: skip


def correlated(d: int, condition: float, seed: int = 7) -> laws.Gaussian:
    """Return a Gaussian of that condition number, with a mean that is not zero."""
    rng = stream(seed, "problem", "correlated inputs")
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return laws.Gaussian(rng.standard_normal(d), (axes * np.geomspace(1, condition, d)) @ axes.T)


def rotated(law: Law, seed: int = 11) -> laws.Affine:
    """Rotate a law at random: independent components along axes that are not the coordinates'."""
    d, rng = law.n_inputs, stream(seed, "problem", "rotated inputs")
    return laws.Affine(law, np.linalg.qr(rng.standard_normal((d, d)))[0])


def banana(d: int, pairs: int | None = None) -> laws.FromLogDensity:
    """Return the law of z ~ N(0, I) with pairs bent: x_{2j+1} = z_{2j+1} + (z_{2j}² - 1) / 2."""
    last = 2 * (d // 2 if pairs is None else pairs)
    straight, bent = slice(0, last, 2), slice(1, last, 2)

    def log_density(x: jax.Array) -> jax.Array:
        # The map z -> x has unit Jacobian.
        z = x.at[bent].add(-(x[straight] ** 2 - 1) / 2)
        return -0.5 * jnp.sum(z**2) - 0.5 * d * log(2 * pi)

    def sampler(n: int, seed: int) -> np.ndarray:
        x = stream(seed, "law", "Banana").standard_normal((n, d))
        x[:, bent] += (x[:, straight] ** 2 - 1) / 2
        return x

    return laws.FromLogDensity(log_density, d, sampler)


# Product laws have unit variance; the mixture is ½N(1, I) + ½N(-1, I), the papers' own.
LAWS = {
    "gaussian": (laws.standard_normal, "standard Gaussian inputs", ()),
    "correlated": (lambda d: correlated(d, 10.0), "Gaussian inputs of condition 10 and non-zero mean",
                   ("correlated inputs", "not centred")),
    "mixture": (lambda d: laws.GaussianMixture([0.5, 0.5], [np.ones(d), -np.ones(d)], np.eye(d)),
                "mixture of N(1, I) and N(-1, I)", ("two clusters",)),
    "laplace": (lambda d: laws.Laplace(d, 1 / sqrt(2)), "Laplace inputs", ("no smooth score",)),
    "logistic": (lambda d: laws.Logistic(d, sqrt(3) / pi), "logistic inputs", ()),
    "student5": (lambda d: laws.StudentT(d, 5.0, sqrt(3 / 5)), "Student t inputs, df 5", ("heavy tails",)),
    "uniform": (lambda d: laws.Uniform(d, sqrt(3)), "uniform inputs", ("no smooth score", "bounded")),
    "rotated-laplace": (lambda d: rotated(laws.Laplace(d, 1 / sqrt(2))), "Laplace inputs along rotated axes",
                        ("no smooth score", "rotated product")),
    "rotated-uniform": (lambda d: rotated(laws.Uniform(d, sqrt(3))), "uniform inputs along rotated axes",
                        ("no smooth score", "rotated product", "bounded")),
    "banana": (banana, "Gaussian pairs bent by a parabola",
               ("dependent inputs",)),
}  # fmt: skip


@lru_cache(maxsize=64)
def input_law(name: str, d: int) -> Law:
    """Return the law of that name for d inputs."""
    if name not in LAWS:
        raise ValueError(f"unknown input law {name!r}: choose one of {', '.join(LAWS)}")
    return LAWS[name][0](d)


@dataclass(frozen=True)
class Structure:
    """How a teacher is built: its size, its rows, whether outputs have both signs, whether it has biases."""

    title: str
    d: int
    k: int
    rows: TeacherRows
    signs: bool = False
    bias: bool = False
    tags: tuple[str, ...] = ()


STRUCTURES = {
    "orthonormal": Structure("orthonormal rows", 8, 8, orthonormal),
    "kappa5": Structure("condition number 5", 8, 8, conditioned(5.0), tags=("not orthogonal",)),
    "narrow": Structure("orthonormal rows, few units", 20, 4, orthonormal),
    "signs": Structure("random rows, outputs of both signs", 10, 6, spread, signs=True,
                       tags=("not orthogonal",)),
    "biased": Structure("random rows with biases, outputs of both signs", 10, 6, spread, signs=True,
                        bias=True, tags=("not orthogonal",)),
}  # fmt: skip


_ACTIVATIONS = {name.replace("_", "-"): name for name in activations.names(compared=True)}
_LAW_NAME = re.compile(
    rf"(?P<law>{'|'.join(LAWS)})-(?P<g>{'|'.join(_ACTIVATIONS)})-(?P<structure>{'|'.join(STRUCTURES)})"
    r"(?:-(?P<d>[1-9]\d*)x(?P<k>[1-9]\d*))?"
)
_TABLE_NAME = re.compile(rf"(?P<table>{'|'.join(TABLES)})-(?P<g>{'|'.join(_ACTIVATIONS)})-(?P<k>[1-9]\d*)")


def grid_names() -> Iterator[str]:
    """List every law, activation and structure at its own size, and ReLU teachers on real tables.

    Polynomial activations hide their units: one structure each, kept for the honest refusal.
    """
    for law in LAWS:
        for hyphened, name in _ACTIVATIONS.items():
            hidden = activations.get(name).polynomial
            for structure in ("signs",) if hidden else STRUCTURES:
                yield f"{law}-{hyphened}-{structure}"
    for table in TABLES:
        for k in (3, 5, 10):
            yield f"{table}-relu-{k}"


def from_name(name: str) -> Problem | None:
    """Return the problem that a systematic name describes; None when it is not one."""
    if found := _LAW_NAME.fullmatch(name):
        size = (int(found["d"]), int(found["k"])) if found["d"] else None
        return _planted(name, found["law"], _ACTIVATIONS[found["g"]], STRUCTURES[found["structure"]], size)
    if found := _TABLE_NAME.fullmatch(name):
        return _on_table(name, TABLES[found["table"]], _ACTIVATIONS[found["g"]], int(found["k"]))
    return None


def _planted(
    name: str, law: str, g: str, structure: Structure, size: tuple[int, int] | None, largest: int = 1000
) -> Problem:
    d, k = size or (structure.d, structure.k)
    if max(d, k) > largest:
        raise ValueError(f"{name} asks for {d} inputs and {k} units: problems go up to {largest} of each")
    return Problem(
        name, f"{g}, d = {d}, k = {k}, {structure.title}; {LAWS[law][1]}", input_law(law, d), d, k, g,
        structure.rows,
        2 ** ceil(log2(max(40 * k * d, 1024))),  # about forty samples per parameter
        structure.signs, structure.bias,
        tags=(*structure.tags, *LAWS[law][2]),
    )  # fmt: skip


def _on_table(name: str, table: RealInputs, g: str, k: int) -> Problem:
    few = () if table.n_rows > 10 * k * (table.n_inputs + 1) else ("few samples per parameter",)
    return Problem(
        name, f"{g} with biases, k = {k}, on {table.n_rows} rows of {table.n_inputs} columns: {table.title}",
        table, table.n_inputs, k, g, spread, table.n_rows, signs=True, bias=True,
        tags=("real inputs", *few, *table.tags), biases=cutting(table),
    )  # fmt: skip


def cutting(table: RealInputs) -> TeacherBiases:
    """Biases that put every unit's hyperplane between the 20 and 80 % quantiles of the projected rows."""

    def draw(rng: np.random.Generator, weights: np.ndarray) -> np.ndarray:
        levels = rng.uniform(0.2, 0.8, len(weights))
        return -np.array([np.quantile(table.rows @ a, q) for a, q in zip(weights, levels, strict=True)])

    return draw


@lru_cache(maxsize=1)
def _by_hand() -> dict[str, Problem]:
    problems = [
        Problem("demo", "ReLU, 10 inputs, 6 units of both signs with biases, correlated Gaussian inputs",
                correlated(10, 10.0), 10, 6, "relu", spread, 4000, signs=True, bias=True, tags=("easy",)),
        Problem("relu-rotation-50", "ReLU, d = k = 50, rows a random rotation, outputs 1",
                standard(50), 50, 50, "relu", orthonormal, 16_384, tags=("many units", "no subspace")),
        Problem("relu-orthonormal-200x5", "ReLU, d = 200, k = 5, orthonormal rows",
                standard(200), 200, 5, "relu", orthonormal, 4096, tags=("many inputs",)),
        Problem("relu-orthonormal-50x10", "ReLU, d = 50, k = 10, orthonormal rows",
                standard(50), 50, 10, "relu", orthonormal, 4096),
        Problem("relu-conditioned-20x10", "ReLU, d = 20, k = 10, condition number 5, outputs of both signs",
                standard(20), 20, 10, "relu", conditioned(5.0), 4096, signs=True,
                tags=("not orthogonal",)),
        *(Problem(f"{name.replace('_', '-')}-20x10", f"{name}, d = 20, k = 10, orthonormal rows, both signs",
                  standard(20), 20, 10, name, orthonormal, 4096, signs=True)
          for name in ("tanh", "sigmoid", "erf", "squared_relu", "softplus", "gelu", "leaky_relu")),
        Problem("relu-biased-20x10", "ReLU with biases and intercept, d = 20, k = 10",
                standard(20), 20, 10, "relu", orthonormal, 4096, signs=True, bias=True),
        Problem("relu-correlated-20x10",
                "ReLU with biases, d = 20, k = 10, Gaussian inputs of condition 100 and non-zero mean",
                correlated(20, 100.0), 20, 10, "relu", orthonormal, 4096, signs=True, bias=True,
                tags=("correlated inputs",)),
        Problem("relu-noisy-20x5", "ReLU, d = 20, k = 5, noise of a tenth of std(y)",
                standard(20), 20, 5, "relu", orthonormal, 20_000, noise=0.1),
    ]  # fmt: skip
    return {p.name: p for p in problems}


def names() -> list[str]:
    """Return the problems that are listed; names of the grid also take a size, ``…-DxK``.

    Returns
    -------
    list of str
        The names.
    """
    return [*_by_hand(), *grid_names()]


def get(name: str) -> Problem:
    """Return the problem of that name: ``get(name).sample(n, seed) -> (X, y, teacher)``.

    ``LAW-ACTIVATION-STRUCTURE-DxK`` (``laplace-relu-orthonormal-50x50``) and ``TABLE-ACTIVATION-K``
    (``wine-tanh-4``) may be asked for at any size.

    Parameters
    ----------
    name : str
        One of ``names()``, or a systematic name of another size.

    Returns
    -------
    Problem
        The problem.

    Raises
    ------
    ValueError
        For a name of no problem.

    Examples
    --------
    >>> import onehidden as oh
    >>> X, y, teacher = oh.problems.get("laplace-relu-orthonormal-5x2").sample(100, seed=0)
    >>> X.shape, y.shape
    ((100, 5), (100,))
    >>> teacher
    OneHiddenNet(2 relu units of 5 inputs)
    """
    problem = _by_hand().get(name) or from_name(name) if isinstance(name, str) else None
    if problem is None:
        near = get_close_matches(str(name), names(), 5, 0.5) or list(_by_hand())
        raise ValueError(
            f"unknown problem {name!r}: did you mean {', '.join(near)}? problems.names() lists all"
        )
    return problem
