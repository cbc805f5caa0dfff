"""A recovery made by hand: the fields that reports and tables read, without running a search."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from helpers import teacher

from onehidden.certify.units import UnitVerdict
from onehidden.checks import About, Check, at_least, at_most
from onehidden.network import OneHiddenNet

HOSTILE = "<script>alert(1)</script>"


@dataclass(frozen=True)
class Step:
    stage: str
    step: int
    loss: float
    seconds: float


@dataclass(frozen=True)
class FakeRecovery:
    network: OneHiddenNet
    status: str = "converged: the gradient vanished and the fit is at the noise level"
    converged: bool = True
    message: str = ""
    loss: float = 0.0101
    noise_variance: float = 0.0102
    seconds: float = 3.21
    checks: tuple[Check, ...] = ()
    standard_errors: Any = None
    trace: tuple[Step, ...] = ()
    signal: dict[int, float] = field(default_factory=dict)
    feature_names: tuple[str, ...] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    units: tuple[UnitVerdict, ...] = ()

    def predict(self, X: Any, offset: Any = None) -> np.ndarray:
        return self.network.predict(X)

    def interval(self, level: float = 0.95):
        from scipy.stats import norm

        z = norm.ppf(0.5 + level / 2)
        ends = []
        for sign in (-1, 1):
            parts = {
                name: getattr(self.network, name) + sign * z * getattr(self.standard_errors, name)
                for name in ("weights", "output", "bias", "intercept")
            }
            ends.append(SimpleNamespace(**parts))
        return tuple(ends)


def problem(
    k: int = 4, d: int = 6, n: int = 3000, activation: str = "relu", noise: float = 0.1, seed: int = 0
):
    """(X, y, truth, found): found is the truth, slightly off and in another order."""
    truth = teacher(activation, d, k, seed, rows="uneven", output="uneven", bias=0.4, intercept=0.3)
    A, w, b = truth.weights, truth.output, truth.bias
    rng = np.random.default_rng([seed, 1])
    X = rng.standard_normal((n, d))
    y = truth.predict(X) + noise * rng.standard_normal(n)
    order = rng.permutation(k)
    off = 1e-3 * rng.standard_normal((k, d))
    found = OneHiddenNet(A[order] + off, w[order] * 1.001, b[order] + 1e-3, 0.301, activation)
    return X, y, truth, found


def fake(found: OneHiddenNet, names: tuple[str, ...] | None = None, good: bool = True) -> FakeRecovery:
    rng = np.random.default_rng(5)
    k, d = found.weights.shape
    errors = SimpleNamespace(
        weights=rng.uniform(0.002, 0.01, (k, d)),
        output=rng.uniform(0.002, 0.02, k),
        bias=rng.uniform(0.002, 0.02, k),
        intercept=0.004,
    )
    trace = [Step("moments", i, 2.0 * 0.97**i, 0.01 * i) for i in range(5)]
    trace += [Step("wide network", 100 * i, 1.7 * 0.93**i + 0.05, 0.1 + 0.02 * i) for i in range(60)]
    trace += [Step("Levenberg–Marquardt", i, 0.06 * 0.4**i + 0.0101, 1.4 + 0.05 * i) for i in range(14)]
    checks = (
        at_most("fit against noise", 1.02, 1.1, "The residual is what noise alone would leave.", About.FIT),
        at_most("gradient", 3.1e-12, 1e-8, "The search ended at a stationary point.", About.SEARCH),
        at_least("smallest curvature", 0.021, 1e-6, "The data determine every direction.", About.UNITS),
        at_least(
            "identifiability",
            1e-13 if not good else 0.4,
            1e-9,
            "The Jacobian has full rank."
            if good
            else "Two units point the same way: ask for fewer units or more data.",
            About.UNITS,
        ),
    )
    return FakeRecovery(
        found,
        status="converged" if good else "stopped: no further progress",
        converged=good,
        message="what is left looks like noise" if good else "two units are parallel",
        checks=checks,
        standard_errors=errors,
        trace=tuple(trace),
        signal={1: 41.0, 2: 87.3, 3: 0.8, 4: -12.5},
        feature_names=names,
        options={
            "source": "data.csv",
            "target": "y",
            "hidden": k,
            "activation": "relu",
            "bias": True,
            "seed": 0,
        },
        versions={"onehidden": "0.1.0", "jax": "0.10.2", "numpy": "2.4.6", "python": "3.11.9"},
    )


def saved_run(folder, network: OneHiddenNet, names, options: dict[str, Any] | None = None, n: int = 60):
    """A run folder with a consistent answer, as a command would leave it."""
    from onehidden.certify import Status
    from onehidden.certify.errors import ParameterRecord
    from onehidden.recovery import Recovery

    k, d = network.weights.shape
    errors = ParameterRecord(np.ones((k, d)), np.ones(k), np.ones(k), 1.0)
    recovery = Recovery(
        network, Status.CONSISTENT, "fits", 0.1, 0.1, 1.0, [at_most("fit", 0.0, 1.0, "fine")], errors, [],
        {}, "test", n, tuple(names), options or {}, {},
    )  # fmt: skip
    recovery.save(folder)
    return recovery
