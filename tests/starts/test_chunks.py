"""How many steps a student takes between two looks at the clock."""

import pytest

from onehidden.starts.wide import chunk_of


@pytest.mark.parametrize(("step", "chunk"), [(1e6, 500), (1e8, 500), (5e8, 100), (2e9, 10), (1e13, 10)])
def test_a_large_step_is_asked_about_sooner(step, chunk):
    assert chunk_of(step) == chunk
