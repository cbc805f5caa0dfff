"""The reproductions of [ZSJBD]: verdicts, and grids with a finish written out here."""

from __future__ import annotations

import matplotlib.figure
import numpy as np
import pytest

from onehidden_papers import reproductions as papers
from onehidden_papers.reproductions import experiment, success_rates
from onehidden_papers.reproductions.record import Reproduction, printed


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("zsjbd-rho", ["reproduced", "not reproduced", "reproduced"]),
        ("zsjbd-degenerate", ["reproduced", "reproduced"]),
    ],
)
def test_tables_are_reproduced(name, verdict):
    result = papers.get(name)(full=False, seed=0)
    assert list(result.verdicts.values()) == verdict
    assert result.name == name
    result.draw(matplotlib.figure.Figure())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["zsjbd-properties", "zsjbd-linear"])
def test_slower_tables_are_reproduced(name):
    assert papers.get(name)(full=False, seed=0).summary() == "reproduced"


def test_every_registered_reproduction_can_be_loaded():
    for name in papers.names():
        assert callable(papers.get(name))


def test_icml_cell_succeeds_where_the_figure_has_three_in_ten():
    found = [success_rates.trial(50, 1000, seed) for seed in range(2)]
    assert max(error for error, _ in found) < success_rates.Settings.success
    assert all(signs == 1.0 for _, signs in found)
    assert printed("zsjbd-icml-grid")[1000][success_rates.Settings.dimensions.index(50)] == 0.3


@pytest.mark.parametrize(
    ("error", "rate", "verdict"), [(1e-9, 1.0, "reproduced"), (1.3, 0.0, "not reproduced")]
)
def test_grid_counts_failures(error, rate, verdict):
    settings = success_rates.Settings((10,), (1000,), 10)
    table = success_rates.measure(settings, 0, lambda d, n, seed: (error, 1.0))
    result = Reproduction(success_rates.GRID, table)
    assert table.rows[0][3] == rate
    assert result.summary() == verdict
    result.draw(matplotlib.figure.Figure())


def test_cells_over_processes_give_the_same_answers():
    cells = [(20, 400, seed) for seed in range(2)]
    alone = experiment.map_cells(success_rates.trial, cells)
    with experiment.workers(2):
        together = experiment.map_cells(success_rates.trial, cells)
    np.testing.assert_allclose(together, alone, atol=1e-13)
