"""What is taken for the law of the inputs: a score chosen from the sample, clusters, or what was given."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import problem_of

import onehidden as oh
from onehidden.starts.candidate import InputModel
from onehidden_papers.laws import GaussianMixture, standard_normal
from onehidden_papers.starts.input_law import NORMAL, clusters_of, departure, looks_gaussian, score_of


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
    problem = _problem(law.sample(2000, 1))
    model = problem.input_model
    assert model.name == "not needed"
    score = score_of(problem)
    assert model.name.startswith(kind)
    assert isinstance(score, oh.laws.Gaussian) == (kind == "Gaussian")
    assert looks_gaussian(problem, 0) == (kind == "Gaussian")
    assert score_of(problem) is score  # of all searches of a run


def test_few_gaussian_rows_look_gaussian_though_their_axes_are_chosen_with_y():
    """The axes of z are eigenvectors of E[(t + t²) z z'], along which the rows of large t² stand out."""
    X = standard_normal(50).sample(1000, 0)
    problem = replace(_problem(X), rows=replace(_problem(X).samples, y=np.maximum(X[:, :5], 0).sum(axis=1)))
    turned = replace(problem, whitening=problem.whitening.turned(problem.samples.axes(problem.whitening)))
    assert departure(turned.Z) > NORMAL  # what would be seen along them
    assert looks_gaussian(turned, 0)
    assert isinstance(score_of(turned), oh.laws.Gaussian)
    heavy = oh.laws.StudentT(50, 5.0).sample(1000, 0)
    assert not looks_gaussian(_problem(heavy), 0)
