"""The figures of [GMOV] on scores: bookkeeping, without the long runs."""

from __future__ import annotations

import numpy as np
import pytest

from onehidden import papers
from onehidden.papers import gmov_scores


def test_printed_slopes_of_figure_one_are_swapped():
    fig1 = gmov_scores.REPORTED["gmov-fig1"]
    # Least squares on the medians; the text prints the two slopes of figure 1 the other way round.
    assert abs(gmov_scores.slope(fig1[2]) - -0.494) < 1e-3
    assert abs(gmov_scores.slope(fig1[4]) - -0.521) < 1e-3
    printed = gmov_scores.PRINTED_SLOPES["gmov-fig1"]
    found = gmov_scores.slope(fig1[2])
    assert abs(found - printed[4]) < abs(found - printed[2])


def test_a_small_run_fills_every_row_and_draws(monkeypatch):
    monkeypatch.setattr(gmov_scores, "SIZES", (128, 256))
    for name in gmov_scores.REPORTED:
        for order in (2, 4):
            short = gmov_scores.REPORTED[name][order][:2]
            monkeypatch.setitem(gmov_scores.REPORTED[name], order, short)
    monkeypatch.setattr(
        gmov_scores,
        "_DEFAULT",
        {gmov_scores.LOCAL: (1, 1), gmov_scores.HINDSIGHT: (1, 1), gmov_scores.BEST: (2, 2)},
    )
    result = papers.get("gmov-fig2")(full=False, seed=0)
    assert len(result.rows) == 3 * 2 * 2
    percentiles = np.array([row[4:9] for row in result.rows], dtype=float)
    assert np.all(np.diff(percentiles, axis=1) >= 0)
    assert {row[9] for row in result.rows} <= {"yes", "no"}
    from matplotlib.figure import Figure

    assert result.draw is not None
    figure = Figure()
    result.draw(figure)
    assert len(figure.axes) == 2


def test_unknown_reproductions_get_one_sentence():
    with pytest.raises(ValueError, match="gmov-fig1"):
        papers.get("gmov-fig9")
