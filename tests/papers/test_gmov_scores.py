"""The figures of [GMOV] on scores: bookkeeping, without the long runs."""

from __future__ import annotations

import numpy as np
import pytest

from onehidden_papers import reproductions as papers
from onehidden_papers.laws import GaussianMixture, standard_normal
from onehidden_papers.reproductions import gmov_scores
from onehidden_papers.reproductions.record import printed
from onehidden_papers.scores import LocalLikelihood


def test_printed_slopes_of_figure_one_are_swapped():
    fig1 = printed("gmov-fig1")
    # Least squares on the medians; the text prints the two slopes of figure 1 the other way round.
    assert abs(gmov_scores.slope_and_error(gmov_scores.SIZES, fig1[2])[0] - -0.494) < 1e-3
    assert abs(gmov_scores.slope_and_error(gmov_scores.SIZES, fig1[4])[0] - -0.521) < 1e-3
    slopes = gmov_scores.PRINTED_SLOPES["gmov-fig1"]
    found = gmov_scores.slope_and_error(gmov_scores.SIZES, fig1[2])[0]
    assert abs(found - slopes[4]) < abs(found - slopes[2])


def test_a_trial_has_the_errors_of_local_likelihood_and_the_limit_has_a_bias():
    """Errors of one trial against LocalLikelihood, and what p = 2 leaves of S_4 for a mixture."""
    law, x = GaussianMixture([1.0], np.zeros((1, 2)), np.eye(2)), np.zeros((1, 2))
    found = gmov_scores.trial_errors(np.random.default_rng(0), 200, [0.8], law, 1, True)
    rng = np.random.default_rng(0)
    fitted = LocalLikelihood(bandwidth=0.8).fit(rng.standard_normal((200, 2)))
    second = np.abs(np.linalg.eigvalsh(fitted.score(x, 2)[0] + np.eye(2))).max()
    assert abs(found[2][0, 0] - second) < 1e-8 * second
    with pytest.warns(UserWarning, match="degree 2"):
        fourth = fitted.score(x, 4)[0] - standard_normal(2).score(x, 4)[0]
    assert abs(found[4][0, 0] - np.linalg.norm(fourth)) < 1e-8 * np.linalg.norm(fourth)
    law = GaussianMixture([0.5, 0.5], gmov_scores.MEANS["gmov-fig2"], np.eye(2))
    assert np.median(gmov_scores.without_higher(law, 2, rng, 200)) < 1e-12
    assert np.median(gmov_scores.without_higher(law, 4, rng, 200)) > 0.5


def test_unknown_reproductions_get_one_sentence():
    with pytest.raises(ValueError, match="gmov-fig1"):
        papers.get("gmov-fig9")
