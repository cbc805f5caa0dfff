"""A recovery made by hand: the fields that reports and tables read, without running a search."""

from __future__ import annotations

from typing import Any

import numpy as np
from helpers import teacher

from onehidden.certify import Status
from onehidden.certify.errors import ParameterRecord
from onehidden.checks import About, at_least, at_most
from onehidden.network import OneHiddenNet
from onehidden.recovery import Recovery

HOSTILE = "<script>alert(1)</script>"


def bare(found: OneHiddenNet, names: tuple[str, ...] | None = None, **known: Any) -> Recovery:
    """A recovery of which only the network is known."""
    k, d = found.weights.shape
    errors = ParameterRecord(np.zeros((k, d)), np.zeros(found.output.shape), np.zeros(k), 0.0)
    names = names or tuple(f"x{j}" for j in range(d))
    fields: dict[str, Any] = dict(
        status=Status.DOUBTFUL, message="", loss=0.0101, noise_variance=0.0102, seconds=3.21, checks=[],
        standard_errors=errors, trace=[], origin="test", n_samples=3000, feature_names=names,
        options={}, versions={},
    )  # fmt: skip
    return Recovery(found, **(fields | known))


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


def fake(found: OneHiddenNet, names: tuple[str, ...] | None = None, good: bool = True) -> Recovery:
    rng = np.random.default_rng(5)
    k, d = found.weights.shape
    errors = ParameterRecord(
        rng.uniform(0.002, 0.01, (k, d)), rng.uniform(0.002, 0.02, k), rng.uniform(0.002, 0.02, k), 0.004
    )
    checks = [
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
    ]
    options = {
        "source": "data.csv", "target": "y", "hidden": k, "activation": "relu", "bias": True, "seed": 0
    }  # fmt: skip
    return bare(
        found, names,
        status=Status.CONSISTENT if good else Status.DOUBTFUL,
        message="what is left looks like noise" if good else "two units are parallel",
        checks=checks, standard_errors=errors, options=options,
        versions={"onehidden": "0.1.0", "jax": "0.10.2", "numpy": "2.4.6", "python": "3.11.9"},
    )  # fmt: skip


def saved_run(folder, network: OneHiddenNet, names, options: dict[str, Any] | None = None, n: int = 60):
    """A run folder with a consistent answer, as a command would leave it."""
    k, d = network.weights.shape
    errors = ParameterRecord(np.ones((k, d)), np.ones(k), np.ones(k), 1.0)
    recovery = Recovery(
        network, Status.CONSISTENT, "fits", 0.1, 0.1, 1.0, [at_most("fit", 0.0, 1.0, "fine")], errors, [],
        "test", n, tuple(names), options or {}, {},
    )  # fmt: skip
    recovery.save(folder)
    return recovery
