"""The figures of [GMOV] on scores: bookkeeping, without the long runs."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from onehidden.laws.gaussian import standard_normal
from onehidden.machine import double
from onehidden.scores import LocalLikelihood
from onehidden_papers import reproductions as papers
from onehidden_papers.reproductions import gmov_scores
from onehidden_papers.reproductions.record import printed


def test_printed_slopes_of_figure_one_are_swapped():
    fig1 = printed("gmov-fig1")
    # Least squares on the medians; the text prints the two slopes of figure 1 the other way round.
    assert abs(gmov_scores.slope_and_error(gmov_scores.SIZES, fig1[2])[0] - -0.494) < 1e-3
    assert abs(gmov_scores.slope_and_error(gmov_scores.SIZES, fig1[4])[0] - -0.521) < 1e-3
    slopes = gmov_scores.PRINTED_SLOPES["gmov-fig1"]
    found = gmov_scores.slope_and_error(gmov_scores.SIZES, fig1[2])[0]
    assert abs(found - slopes[4]) < abs(found - slopes[2])


def test_a_trial_is_the_library_s_closed_form_and_the_limit_has_a_bias():
    """The batched trials against LocalLikelihood, and what p = 2 leaves of S_4 for a mixture."""
    X, x = np.random.default_rng(0).standard_normal((200, 2)), np.zeros((1, 2))
    with double():
        given = (jnp.asarray(part) for part in (X, x[0], np.array([0.8]), np.zeros((1, 2))))
        errors = np.asarray(gmov_scores.llsfe_errors(*given))
    fitted = LocalLikelihood(bandwidth=0.8).fit(X)
    second = np.abs(np.linalg.eigvalsh(fitted.score(x, 2)[0] + np.eye(2))).max()
    assert abs(errors[0, 0] - second) < 1e-8 * second
    with pytest.warns(UserWarning, match="degree 2"):
        fourth = fitted.score(x, 4)[0] - standard_normal(2).score(x, 4)[0]
    assert abs(errors[0, 1] - np.linalg.norm(fourth)) < 1e-8 * np.linalg.norm(fourth)
    means = np.array(gmov_scores.MEANS["gmov-fig2"])
    assert np.median(gmov_scores.without_higher(means, 2, 0, 200)) < 1e-12
    assert np.median(gmov_scores.without_higher(means, 4, 0, 200)) > 0.5


def test_unknown_reproductions_get_one_sentence():
    with pytest.raises(ValueError, match="gmov-fig1"):
        papers.get("gmov-fig9")
