"""The verdict's catalogue: what is true, how it is disturbed, how it is asked; plain values only.

Shapes (n, d, k, activation) are few and met often: compiled code is shared by the runs of one process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from functools import cached_property

from onehidden.run import derived_seed, stream

NOISES = ("none", "equal", "unequal", "heavy", "skewed", "autocorrelated", "rounded", "error in x")
# Laws of y whose linear predictor is the network, in place of noise.
FAMILIES = ("logit", "rare events", "poisson", "over-dispersed", "negative binomial", "gamma")
LEVELS = (0.05, 0.2, 0.5)  # noise in standard deviations of the function
RATIOS = (5, 10, 30, 100)  # samples a parameter
LAWS = ("gaussian", "correlated", "skewed", "heavy", "clusters")
TIES = {"clip": 2, "hat": 3, "three": 3, "bump": 3, "frame": 4}  # units of each
STRANGERS = ("linear", "sine", "product", "tree", "max", "two-layer", "missing")
OTHER = {"relu": "tanh", "tanh": "relu", "softplus": "squared_relu", "squared_relu": "softplus"}
# (activation, d, k) of the planted networks.
SPECS = (("relu", 8, 1), ("relu", 4, 2), ("relu", 6, 3), ("relu", 16, 4), ("relu", 5, 5), ("relu", 10, 6),
         ("tanh", 3, 2), ("tanh", 6, 4), ("softplus", 5, 2), ("squared_relu", 4, 3), ("tanh", 2, 1),
         ("softplus", 8, 3))  # fmt: skip
FAMILY_SPECS = (("relu", 3, 2), ("relu", 4, 1), ("tanh", 2, 2), ("softplus", 3, 1))
FAMILY_RATIOS = (60, 150)  # samples a parameter
MOST_ROWS = 3200  # a run takes a few seconds
# (table, rows, columns used, k): as many samples a parameter as the rows give.
PLANTED = (("iris", 150, 4, 1), ("iris", 150, 4, 3), ("wine", 178, 13, 1), ("diabetes", 442, 10, 2),
           ("diabetes", 442, 10, 4), ("breast-cancer", 569, 10, 3),
           ("breast-cancer", 569, 10, 5))  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One run: ``truth`` of ``k`` units (for a stranger: units asked) disturbed by ``noise``, then asked."""

    truth: str
    activation: str
    law: str
    d: int
    k: int
    noise: str
    level: float
    n: int
    ask: str
    seed: int

    @property
    def is_network(self) -> bool:
        return self.truth in ("network", "weak")

    @property
    def is_family(self) -> bool:
        return self.noise in FAMILIES

    @property
    def is_tie(self) -> bool:
        return self.truth in TIES

    @property
    def parameters(self) -> int:
        return parameters(self.activation, self.d, self.k)

    @property
    def ratio(self) -> int:
        """The nearest of 5, 10, 30, 100 from below (a little short counts as there)."""
        return max([r for r in RATIOS if 0.9 * r * self.parameters <= self.n], default=RATIOS[0])

    @property
    def hidden(self) -> int | None:
        """The number of units asked for."""
        if self.ask == "open":
            return None
        return self.k + {"fewer": -1, "more": 1}.get(self.ask, 0)

    @property
    def asked(self) -> str:
        """The activation asked for."""
        return OTHER[self.activation] if self.ask == "other" else self.activation

    @property
    def shape(self) -> tuple[str, int, int, int]:
        """What compiled code depends on."""
        return self.asked, self.d, self.n, -1 if self.hidden is None else self.hidden

    @cached_property
    def words(self) -> tuple[str | int, ...]:
        """What names the streams of this case: all but the seed and the ask, which changes no draw."""
        return self.truth, self.activation, self.law, self.d, self.k, self.noise, str(self.level), self.n

    @property
    def solver_seed(self) -> int:
        return derived_seed(self.seed, "verdict", *self.words, self.ask, "solver")

    def cell(self) -> tuple[str | int | float, ...]:
        return astuple(self)


def parameters(activation: str, d: int, k: int) -> int:
    """Free parameters: k rows, biases and outputs and an intercept, less k scales where g is homogeneous."""
    return k * (d + 2 - (activation in ("relu", "squared_relu"))) + 1


def catalogue() -> list[Case]:
    """Every case, 1700 or so, in an order in which any beginning is a fair sample."""
    every = (_planted(), _families(), _misasked(), _ties(), _weak(), _strangers(), _pure_noise())
    cases = list(dict.fromkeys(case for some in every for case in some))
    order = stream(0, "verdict", "order").permutation(len(cases))
    return [cases[i] for i in order]


def chosen(runs: int | None, quick: bool) -> list[Case]:
    """The first ``runs`` of the catalogue; quick ones have few rows.

    ``BENCH_SEEDS`` moves all seeds by so many: other teachers, samples and noise of the same kinds, for rules
    that were changed after rows of the first ones were looked at.
    """
    moved = int(os.environ.get("BENCH_SEEDS", "0"))
    cases = [replace(case, seed=case.seed + moved) for case in catalogue()]
    if quick:
        small = [c for c in cases if c.n <= 600 and c.k <= 3]
        return small[: runs or 40]
    return cases[:runs] if runs else cases


_TIMES = {"equal": 8, "unequal": 6, "heavy": 4, "skewed": 4, "autocorrelated": 1}  # of each law and ratio


def _planted() -> Iterator[Case]:
    """Networks asked rightly: every noise, ratio and law; equal and unequal noise most often."""
    count = 0
    for noise in NOISES:
        for ratio in RATIOS:
            for law in LAWS:
                for _ in range(_TIMES.get(noise, 2)):
                    # 12 specs and 3 levels in a turn of 36, prime to the turns above.
                    g, d, k = SPECS[count % 12]
                    yield _case("network", g, law, d, k, noise, LEVELS[(count // 12) % 3], ratio, count)
                    count += 1
    for table, rows, d, k in PLANTED:
        for noise in ("none", "equal", "unequal", "heavy", "error in x"):
            for seed in range(2 if noise != "none" else 1):
                yield Case("network", "relu", table, d, k, noise, _level(noise, seed), rows, "right", seed)


def _families() -> Iterator[Case]:
    """Networks behind counts, labels and amounts, asked rightly."""
    for noise in FAMILIES:
        for count in range(30):
            (g, d, k), law = FAMILY_SPECS[count % 4], ("gaussian", "correlated", "clusters")[count % 3]
            yield _case("network", g, law, d, k, noise, 1.0, FAMILY_RATIOS[count // 4 % 2], count)


def _misasked() -> Iterator[Case]:
    """Width left open, a unit fewer, a unit more, another activation."""
    count = 0
    for ask, times in (("open", 2), ("fewer", 1), ("more", 1), ("other", 1)):
        for noise in NOISES if ask == "open" else ("none", "equal", "unequal", "heavy", "rounded"):
            for ratio in (10, 30):
                for spec in (1, 2, 4, 6, 8, 9):
                    for _ in range(times if noise in ("equal", "unequal", "heavy", "skewed") else 1):
                        g, d, k = SPECS[spec]
                        law, level = LAWS[count % 5], LEVELS[(count // 5) % 3]
                        yield _case("network", g, law, d, k, noise, level, ratio, count, ask)
                        count += 1


def _ties() -> Iterator[Case]:
    shapes = [("clip", "relu", 2), ("clip", "softplus", 3), ("hat", "relu", 3), ("three", "relu", 4),
              ("three", "softplus", 2), ("bump", "squared_relu", 2),
              ("frame", "squared_relu", 3)]  # fmt: skip
    for i, (tie, g, d) in enumerate(shapes):
        for j, noise in enumerate(("none", "equal", "unequal", "heavy")):
            for ratio in (10, 30):
                for seed, ask in enumerate(("right", "right", "open")):
                    law = ("gaussian", "skewed", "clusters")[(i + j) % 3]
                    level = LEVELS[:2][(i + j + ratio // 10) % 2]
                    yield _case(tie, g, law, d, TIES[tie], noise, level, ratio, seed, ask)


def _weak() -> Iterator[Case]:
    for g, d, k in (SPECS[2], SPECS[9]):
        for noise in ("equal", "unequal", "heavy"):
            for ratio in (10, 30, 100):
                for seed in range(4):
                    ask = "right" if seed == 3 else "open"
                    yield _case("weak", g, LAWS[seed], d, k, noise, LEVELS[seed % 3], ratio, seed, ask)


def _strangers() -> Iterator[Case]:
    """Functions that no network of the family computes."""
    for i, truth in enumerate(STRANGERS):
        for j, noise in enumerate(NOISES):
            for ask, ratio in (("right", 10), ("right", 30), ("open", 30)):
                for seed in range(2 if ask == "right" and ratio == 30 else 1):
                    g, d, k = (("relu", 4, 2), ("relu", 6, 3), ("tanh", 3, 2), ("softplus", 5, 2))[
                        (i + j + seed) % 4
                    ]
                    law = LAWS[(i + 2 * j + 3 * seed) % 5]
                    yield _case(truth, g, law, d, k, noise, LEVELS[(j + seed) % 3], ratio, seed, ask)


def _pure_noise() -> Iterator[Case]:
    for j, noise in enumerate(("equal", "unequal", "heavy", "autocorrelated", "rounded")):
        for i, (d, k) in enumerate(((2, 1), (6, 1), (15, 1), (4, 2))):
            for ask in ("right", "open"):
                for seed in range(5):
                    g = ("relu", "tanh")[i == 3]
                    n = (100, 400)[seed % 2]
                    law = LAWS[(i + j + seed) % 5]
                    yield Case("noise", g, law, d, k, noise, 1.0, n, ask, seed)


def _level(noise: str, index: int) -> float:
    return 0.0 if noise == "none" else LEVELS[index % 3]


def _case(
    truth: str,
    activation: str,
    law: str,
    d: int,
    k: int,
    noise: str,
    level: float,
    ratio: int,
    seed: int,
    ask: str = "right",
) -> Case:
    n = min(max(ratio * parameters(activation, d, k), 30), MOST_ROWS)
    return Case(truth, activation, law, d, k, noise, 0.0 if noise == "none" else level, n, ask, seed)
