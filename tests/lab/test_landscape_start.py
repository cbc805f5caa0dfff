"""Landscape starts from exact moments."""

from __future__ import annotations

import numpy as np
import pytest

from onehidden.matching import match
from onehidden.network import OneHiddenNet
from onehidden_papers.objectives.sources import RankOne
from onehidden_papers.starts.landscape import landscape_start


def exact_tensors(teacher):
    source = RankOne.of(teacher, (2, 4))
    U = np.asarray(source.directions)
    c2, c4 = (np.asarray(source.coefficients[m]) for m in (2, 4))
    return {2: np.einsum("i,ia,ib->ab", c2, U, U), 4: np.einsum("i,ia,ib,ic,id->abcd", c4, U, U, U, U)}


def skew(k, d, seed=0):
    rows = np.random.default_rng(seed).standard_normal((k, d)) / np.sqrt(d)
    return rows / np.linalg.norm(rows, axis=1)[:, None]


@pytest.mark.parametrize(("k", "r", "sign"), [(5, 5, 1), (3, 5, -1), (13, 13, 1)])
def test_landscape_start_finds_skew_rows_from_exact_moments(k, r, sign):
    teacher = OneHiddenNet(skew(k, r, 2), sign * np.linspace(1, 3, k))
    out = landscape_start(exact_tensors(teacher), k, starts=4)
    assert match(out, teacher.weights).max_error < 1e-6
    assert match(skew(k, r, 11), teacher.weights).max_error > 0.1


def test_landscape_start_refuses_what_it_cannot_do():
    teacher = OneHiddenNet(skew(3, 3), [1.0, -1.0, 1.0])
    with pytest.raises(ValueError, match="indefinite"):
        landscape_start(exact_tensors(teacher), 3)
    with pytest.raises(ValueError, match="fewer than 3"):
        landscape_start(exact_tensors(OneHiddenNet(skew(2, 3), [1.0, 1.0])), 3)
    with pytest.raises(ValueError, match="between 1 and 3"):
        landscape_start(exact_tensors(teacher), 4)
