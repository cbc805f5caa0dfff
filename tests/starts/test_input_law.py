"""What is taken for the law of the inputs: a score chosen from the sample, clusters, or what was given."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import problem_of

import onehidden as oh
from onehidden.starts.candidate import InputModel
from onehidden_papers.laws import GaussianMixture, standard_normal
from onehidden_papers.starts.input_law import clusters_of, looks_gaussian, score_of


def _problem(X, score="auto"):
    problem = problem_of(X, X[:, 0], oh.activations.get("relu"), 2, True)
    return replace(problem, input_model=InputModel(score, 0))


def test_clusters_are_seen_where_whitening_hides_them():
    """Whitened, ½N(1, I) + ½N(-1, I) in 40 inputs departs from a Gaussian along one line only."""
    X = GaussianMixture([0.5, 0.5], [np.ones(40), -np.ones(40)], np.eye(40)).sample(6000, 2)
    problem = _problem(X)
    law = clusters_of(problem)
    assert law is not None
    np.testing.assert_allclose(np.abs(law.means @ problem.search_coordinates.unwhiten), 1.0, atol=0.15)
    assert "2 Gaussian clusters" in problem.input_model.name
    assert clusters_of(_problem(standard_normal(40).sample(6000, 2))) is None
    assert clusters_of(_problem(X, "gaussian")) is None


@pytest.mark.parametrize(
    ("law", "kind"),
    [
        (oh.laws.Gaussian(np.zeros(3), np.eye(3)), "Gaussian"),
        (oh.laws.Logistic(3), "IndependentScore"),
        (
            # no product of independent coordinates, whatever the axes
            GaussianMixture(
                [0.5, 0.5], [2 * np.ones(3), -2 * np.ones(3)], [np.eye(3), np.diag([0.2, 1.0, 3.0])]
            ),
            "MixtureScore",
        ),
    ],
)
def test_the_input_model_follows_the_sample(law, kind):
    problem = _problem(law.sample(6000, 1))
    model = problem.input_model
    assert model.name == "not needed"
    score = score_of(problem)
    assert model.name.startswith(kind)
    assert isinstance(score, oh.laws.Gaussian) == (kind == "Gaussian")
    assert looks_gaussian(problem.Z, 0) == (kind == "Gaussian")
    assert score_of(problem) is score  # of all searches of a run
