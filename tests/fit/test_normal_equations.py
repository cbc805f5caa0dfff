"""Sums over rows: normal equations, however the rows are cut, held or streamed."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import normal, planted, teacher, write_folder

from onehidden import activations, data
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.normal_equations import by_pairs, normal_equations
from onehidden.fit.parametrisation import Parametrisation, jacobian_pieces, residuals_and_jacobian
from onehidden.fit.rounding import Rounding
from onehidden.machine import double
from onehidden.recovery.streamed import StreamedRows
from onehidden.solvers import LevenbergMarquardt

FORMS = [
    Parametrisation(activations.get("relu"), 4, 3),
    Parametrisation(activations.get("tanh"), 3, 4, bias=True),
    Parametrisation(activations.get("softplus"), 3, 2, bias=True, skip=True, symmetrised=True),
    Parametrisation(activations.get("gelu"), 2, 3, intercept=False),
    # Homogeneous ones: units are made of slopes and inputs.
    Parametrisation(activations.get("leaky_relu"), 3, 3, bias=True, skip=True),
    Parametrisation(activations.get("squared_relu"), 3, 2, bias=True, skip=True, symmetrised=True),
    Parametrisation(activations.get("cubed_relu"), 2, 3, intercept=False),
]


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_normal_equations_match_the_jacobian_written_out(form, pairs):
    settings = {"pairs": pairs, "table": 1}  # blocks of 256 rows, the last one not full
    rng = np.random.default_rng(1)
    X, y, w = rng.standard_normal((700, form.d)), rng.standard_normal(700), rng.uniform(0, 2, 700)
    theta = rng.standard_normal(form.size)
    with double():
        r, J = (np.asarray(v) for v in residuals_and_jacobian(form, theta, X, y, np.sqrt(w)))
    halves = slice(300), slice(300, 700)
    parts = [normal_equations(form, theta, X[at], y[at], w[at], **settings) for at in halves]
    for hessian, gradient, loss in (
        normal_equations(form, theta, X, y, w, **settings),
        [one + other for one, other in zip(*parts, strict=True)],
    ):
        np.testing.assert_allclose(hessian, J.T @ J, atol=1e-12 * np.abs(J.T @ J).max())
        np.testing.assert_allclose(gradient, J.T @ r, atol=1e-12 * np.abs(J.T @ r).max())
        assert loss == pytest.approx(r @ r, rel=1e-12)


def test_normal_equations_of_large_fits_take_the_table_of_pairs():
    form = Parametrisation(activations.get("relu"), 30, 30)
    assert by_pairs(form)
    assert not by_pairs(Parametrisation(activations.get("relu"), 200, 5))
    rng = np.random.default_rng(2)
    X, y, theta = rng.standard_normal((500, 30)), rng.standard_normal(500), rng.standard_normal(form.size)
    fit = InMemoryLeastSquares(form, X, y)
    hessian, gradient, _ = fit.normal_equations(theta)
    J, r = fit.jacobian(theta, slice(0, 500)), fit.residuals(theta)
    np.testing.assert_allclose(hessian, J.T @ J, atol=1e-11 * np.abs(hessian).max())
    np.testing.assert_allclose(gradient, J.T @ r, atol=1e-11 * np.abs(gradient).max())
    roughly, same, _ = fit.normal_equations(theta, rough=True)
    assert roughly.dtype == np.float32
    scale = np.sqrt(np.diag(hessian))
    error = np.max(np.abs(roughly - hessian) / np.outer(scale, scale))
    assert 1e-12 < error < 1e-5  # single precision, and safe where the damping is 1e-4 of the diagonal
    np.testing.assert_array_equal(same, gradient)


def test_rough_normal_equations_lead_to_the_same_answer():
    """Single precision only steers: the descent ends at the truth to rounding, in about as many steps."""
    form = Parametrisation(activations.get("relu"), 24, 20)
    rng = np.random.default_rng(5)
    X, truth = rng.standard_normal((3000, 24)), rng.standard_normal(form.size)
    weights, output, _, _, constant = form.unpack(truth)
    y = np.maximum(X @ weights.T, 0) @ output + constant
    assert by_pairs(form)
    asked = []

    class Exactly(InMemoryLeastSquares):
        def normal_equations(self, theta, rough=False):
            asked.append(rough)
            return super().normal_equations(theta)

    start = truth + 0.03 * rng.standard_normal(form.size)
    solver = LevenbergMarquardt(floor=1e-26 * 3000)
    found, exactly = (solver.solve(kind(form, X, y), start) for kind in (InMemoryLeastSquares, Exactly))
    assert True in asked
    assert max(found.loss, exactly.loss) < 1e-22
    assert abs(found.steps - exactly.steps) <= 2


def test_batches_of_any_size_add_up_to_the_whole():
    net = teacher("tanh", d=3, k=2)
    form, X = Parametrisation(net.activation, 3, 2), normal(1000, 3)
    truth, y = form.pack(net.weights, net.output), net.predict(X)
    whole = InMemoryLeastSquares(form, X, y + 1).normal_equations(truth)
    parts = list(jacobian_pieces(form, truth, X, y + 1, None, most=1))
    assert [len(r) for r, _ in parts] == [256, 256, 256, 232]
    found = (sum(one) for one in zip(*((J.T @ J, J.T @ r, r @ r) for r, J in parts), strict=True))
    for a, b in zip(whole, found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-10)


def test_passes_do_not_depend_on_batch_size_or_number_of_parts(tmp_path):
    net, X = teacher(k=2, output=[1.0, -2.0]), normal(5000)
    problem = planted(net, X, noise=0.3)
    columns = {**{f"x{j}": X[:, j] for j in range(5)}, "y": problem.samples.y}
    one = data.open(write_folder(tmp_path / "one", columns, files=1, group=5000), target="y")
    many = data.open(write_folder(tmp_path / "many", columns, files=23, group=50), target="y")
    assert len(many.parts) == 23
    theta = np.random.default_rng(3).standard_normal(problem.form.size)
    expected = problem.least_squares.normal_equations(theta)
    for source in (one, many):
        rows = StreamedRows(source, len(X), float(len(X)), Rounding())
        fit = replace(problem, rows=rows).least_squares
        for found, wanted in zip(fit.normal_equations(theta), expected, strict=True):
            assert np.abs(found - wanted).max() < 1e-10 * np.abs(wanted).max()
        assert fit.loss(theta) == fit.normal_equations(theta)[2]
        assert fit.passes == 1  # an accepted step costs one pass, not two
