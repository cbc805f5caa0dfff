"""Signs of many units from few equations, and the proof that there are no others."""

from __future__ import annotations

import numpy as np
import pytest

from onehidden.oracle.signs import relations, solve_signs


def drawn(k: int, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of unequal lengths, as trained units have, and signs."""
    rng = np.random.default_rng(k + rank)
    return rng.standard_normal((rank, k)) * np.exp(rng.standard_normal(k)), rng.choice([-1.0, 1.0], k)


@pytest.mark.parametrize(("k", "rank", "tolerance"), [(40, 12, 1e-9), (30, 3, 1e-12), (20, 1, 1e-12)])
def test_more_signs_than_can_be_tried_are_found(k, rank, tolerance):
    vectors, signs = drawn(k, rank)
    found = solve_signs(vectors, vectors @ signs, tolerance)
    assert found is not None
    assert np.array_equal(found, signs)


def test_a_target_of_no_signs_is_refused():
    vectors, signs = drawn(40, 12)
    signs[3] = 0.0
    assert solve_signs(vectors, vectors @ signs, 1e-9) is None


def test_columns_without_a_relation_are_proven_to_have_none_and_others_are_not():
    vectors, _ = drawn(30, 9)
    vectors /= np.linalg.norm(vectors, axis=0).max()
    free = relations(vectors, 1e-11)
    assert free.proven
    assert np.linalg.matrix_rank(free.basis) == 30
    assert np.array_equal(free.basis, np.round(free.basis))
    tied = vectors.copy()
    tied[:, 7] = -tied[:, [1, 20, 23]].sum(axis=1)
    found = relations(tied, 1e-11)
    # The relation itself, (x, K V x) of length 2, is longer than no Gram-Schmidt length says.
    assert not found.proven
    assert np.min(found.lengths) <= 2 + 1e-9
    one = np.zeros(30)
    one[[1, 7, 20, 23]] = 1.0
    assert np.array_equal(found.nearest(one + 0.2, np.zeros(9)), one)
