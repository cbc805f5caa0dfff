"""Shapes in signatures are checked for real: the library runs with every annotation enforced at run time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# Every module of the library is imported with its signatures checked: shapes by jaxtyping, the rest by
# beartype, where a whole number may stand for a real one as in PEP 484.
PRELUDE = """
import sys, types
from beartype import BeartypeConf, beartype
from jaxtyping import TypeCheckError, install_import_hook

strict = types.ModuleType("strict_types")
strict.check = beartype(conf=BeartypeConf(is_pep484_tower=True))
sys.modules["strict_types"] = strict
with install_import_hook(["onehidden", "onehidden_papers"], "strict_types.check"):
    import onehidden
    from onehidden import activations, laws, matching, network, scores
    from onehidden_papers import moments
    from onehidden_papers.laws.base import power_sum
    from onehidden_papers.scores.local_gaussian import prepare
    from onehidden_papers.scores.local_gaussian import local_moments
    from onehidden_papers.scores.sample import Coordinates, coordinates, draw_rows
import numpy as np
X = laws.GaussianMixture([0.5, 0.5], [[1.0, 1.0], [-1.0, -1.0]], np.eye(2)).sample(200, 0)
"""

WORK = """
law_list = [
    laws.Gaussian([1.0, -1.0], [[2.0, 0.3], [0.3, 1.0]]),
    laws.GaussianMixture([1.0, 2.0], [[1.0, 0.0], [-1.0, 0.5]], np.eye(2)),
    laws.Logistic(2, 1), laws.Sech(2), laws.StudentT(2, 5), laws.GeneralizedGaussian(2, 4.0),
    laws.Laplace(2), laws.Uniform(2), laws.Affine(laws.Logistic(2), [[1.0, 0.5], [0.0, 2.0]], [1, 0]),
]
V = np.array([[1.0], [0.5]])
for law in law_list:
    Q = law.sample(7, 3)
    assert Q.shape == (7, 2) and law.mean.shape == (2,)
    assert law.log_density(Q).shape == law.log_density(Q.tolist()).shape == (7,)
    if law.valid_order < 2:
        continue
    assert law.score(Q, 2).shape == (7, 2, 2) and law.score(Q, 2, subspace=V).shape == (7, 1, 1)
    assert law.contract(Q, [1.0, 0.0], V[:, 0]).shape == (7,)
for estimator in (
    scores.GaussianScore("auto"), scores.MixtureScore(max_components=2), scores.KernelDensityScore(),
    scores.LocalLikelihood(bandwidth=1.0), scores.IndependentScore(),
):
    fitted = estimator.fit(X)
    assert fitted.score(X[:5], 2).shape == (5, 2, 2) and fitted.contract(X[:5], [1.0, 0.0]).shape == (5,)
    assert scores.score_matching(fitted, X[:5]).shape == (5,)
assert len(scores.validity(laws.standard_normal(2), X, orders=(1, 2))) > 2

net = network.OneHiddenNet([[1.0, 2.0], [0.5, -1.0], [0.0, 3.0]], [1, -1, 2], [0.1, 0.0, -0.2], 1, "tanh")
y = net.predict(X)
assert y.shape == (200,) and net.canonical().weights.shape == (3, 2)
turned = network.OneHiddenNet(net.weights[::-1], net.output[::-1], net.bias[::-1], net.intercept, "tanh")
assert matching.match(net, turned).max_error < 1e-12
assert matching.match(net.weights, turned.weights).max_error < 1e-12
found = moments.score_moments(X, y, laws.standard_normal(2), orders=(1, 2))
assert found is not None
"""

# Each hands one function an array of the wrong shape or kind that it takes on trust.
WRONG = {
    "directions of another length": "power_sum(np.zeros((4, 3)), np.zeros((2, 1)), 2)",
    "fewer bandwidths than points": "local_moments(prepare(X), X[:5], np.ones(4))",
    "a map that is not square": "Coordinates(np.zeros(2), np.zeros((2, 3)))",
    "a vector of rows": "draw_rows(np.zeros(10), 3, 0)",
    "whole numbers for points": "coordinates(np.zeros((10, 2), int), 'full')",
}


@pytest.fixture(scope="module")
def lines():
    """What a process of its own says: the hook must stand before the library is first imported."""
    pytest.importorskip("beartype")
    tries = [
        f"try:\n    {call}\n    print({name!r}, 'passed')\n"
        f"except TypeCheckError:\n    print({name!r}, 'refused')"
        for name, call in WRONG.items()
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join([PRELUDE, *tries, WORK, "print('agreed')"])],
        capture_output=True, text=True, check=False, env=os.environ | {"JAX_PLATFORMS": "cpu"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()


def test_small_work_agrees_with_every_annotation(lines):
    assert lines[-1] == "agreed"


def test_wrong_shapes_are_refused_so_the_hook_is_on(lines):
    assert lines[:-1] == [f"{name} refused" for name in WRONG]
