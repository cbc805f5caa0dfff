"""The run: streams by name wherever they are asked for, a clock, progress that is kept and told."""

from itertools import count

import numpy as np
import pytest

from onehidden.run import Run


def test_a_stream_is_known_by_seed_and_name_not_by_where_it_is_asked_for():
    run = Run(3)
    draws = [r.rng("restart", 2).random(3) for r in (run, run.at("width", 4), Run(3, 10.0))]
    np.testing.assert_array_equal(draws[0], draws[1])
    np.testing.assert_array_equal(draws[0], draws[2])
    for other in (run.rng("restart", 3), run.rng("restart"), Run(4).rng("restart", 2)):
        assert not np.array_equal(draws[0], other.random(3))
    assert run.seed_of("mixture") == Run(3).seed_of("mixture") != run.seed_of("landscape")


def test_steps_share_clock_trace_and_listener():
    heard = []
    run = Run(listener=heard.append)
    inner = run.at("width", 3).at("random", 2)
    assert inner.path == ("width", 3, "random", 2)
    inner.report("finish", 7, 0.5)
    assert run.trace is inner.trace
    assert heard == run.trace
    assert (heard[0].stage, heard[0].step, heard[0].loss) == ("finish", 7, 0.5)
    assert inner.clock is run.clock


def test_the_clock_runs_out_and_only_where_there_is_one():
    assert not Run().expired()
    assert Run().left() == np.inf
    late = Run(max_seconds=1e-9)
    assert late.expired()
    assert late.at("step").expired()
    assert late.left() == 0
    ample = Run(max_seconds=1000.0)
    assert not ample.expired()
    assert 999 < ample.left() <= 1000


def test_the_end_of_an_answer_has_what_is_left_of_the_whole_budget_and_little_more():
    run = Run(max_seconds=1000.0)
    stage = run.within(0.5).within(0.5)
    assert 249 < stage.left() <= 250
    assert 1000 < stage.last().left() <= 1002
    assert stage.last().last().left() <= 1002
    assert Run().within(0.5).last().left() == np.inf
    late = Run(max_seconds=1.0, clock=count(10.0, 10.0).__next__, began=0.0)
    assert late.last().expired()


def test_progress_is_printed_when_asked_for(capsys):
    Run(listener=True).report("finish", 3, 0.25)
    said = capsys.readouterr()
    assert said.out == ""
    assert "finish" in said.err
    assert "2.500e-01" in said.err


def test_a_run_is_frozen():
    with pytest.raises(AttributeError):
        Run().seed = 4  # type: ignore[misc]
