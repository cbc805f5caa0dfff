"""Free directions and curvature against matrices written out."""

import numpy as np
import pytest

from onehidden import activations
from onehidden.certify.local_fit import FreeDirections, curvature, known_in_single_precision
from onehidden.certify.units import in_errors
from onehidden.fit.parametrisation import Parametrisation


def case(bias=True, seed=0):
    rng = np.random.default_rng(seed)
    form = Parametrisation(activations.get("relu"), 4, 3, bias)
    J = rng.standard_normal((60, form.size))
    return form, J, rng.standard_normal((3, 4))


def test_free_directions_are_orthonormal_and_orthogonal_to_the_normals():
    form, _, normals = case()
    free = FreeDirections(form, normals)
    D = free.outward(np.eye(free.freedom))
    assert free.freedom == form.size - 3
    assert np.allclose(D.T @ D, np.eye(free.freedom), atol=1e-14)
    for i in range(3):
        assert np.allclose(normals[i] @ D[4 * i : 4 * i + 4], 0, atol=1e-14)
    A = np.random.default_rng(1).standard_normal((form.size, 5))
    assert np.allclose(free.inward(A), D.T @ A, atol=1e-13)


@pytest.mark.parametrize("missing", [0, 2])
def test_curvature_is_that_of_the_matrix_written_out(missing):
    form, J, normals = case()
    free = FreeDirections(form, normals)
    D = free.outward(np.eye(free.freedom))
    if missing:  # the last outputs are seen by no sample
        J[:, 3 * 4 : 3 * 4 + missing] = 0
    hessian = J.T @ J
    found = curvature(hessian, free)
    reduced = D.T @ hessian @ D
    assert found.freedom - found.rank == missing
    assert np.array_equal(np.flatnonzero(found.undetermined), np.arange(12, 12 + missing))
    expected = D @ np.linalg.pinv(reduced, hermitian=True, rcond=1e-12) @ D.T
    assert np.allclose(found.covariance, expected, atol=1e-12 * np.abs(expected).max())
    assert np.abs(found.covariance - np.linalg.pinv(hessian)).max() > 1e-3 * np.abs(expected).max()


def test_many_eigenvalues_are_told_in_single_precision_where_that_is_enough():
    form, J, normals = case()
    free, hessian = FreeDirections(form, normals), J.T @ J
    expected = curvature(hessian, free)
    assert known_in_single_precision(expected.values)
    found = curvature(hessian, free, single_from=1)
    error = np.abs(found.values - expected.values).max() / expected.values[-1]
    assert 1e-12 < error < 1e-6  # single precision was used
    assert found.rank == expected.rank
    np.testing.assert_array_equal(found.covariance, expected.covariance)
    J[:, 13] = J[:, 12] + 1e-4 * J[:, 13]  # two outputs nearly alike: seen, but not in single precision
    found = curvature(J.T @ J, free, single_from=1)
    np.testing.assert_array_equal(found.values, curvature(J.T @ J, free).values)
    assert not known_in_single_precision(found.values)
    assert found.rank == found.freedom


def test_an_error_of_zero_stands_clear_and_an_infinite_one_does_not():
    with np.errstate(all="raise"):
        clear = in_errors(np.array([1.0, 1.0, 2.0]), np.array([0.0, np.inf, 0.5]))
    assert np.isfinite(clear).all()
    assert clear[0] > 1e100
    np.testing.assert_array_equal(clear[1:], [0.0, 4.0])
