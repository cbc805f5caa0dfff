"""The catalogue says what it is: exact truth, stated moments, stable names."""

import json
from dataclasses import replace

import numpy as np
import pytest

import onehidden as oh
from onehidden_papers.problems.catalogue import LAWS, STRUCTURES, TABLES, input_law
from onehidden_papers.problems.problem import conditioned_teacher

HAND_MADE = [
    "demo", "relu-rotation-50", "relu-orthonormal-200x5", "relu-orthonormal-50x10", "relu-conditioned-20x10",
    "tanh-20x10", "sigmoid-20x10", "erf-20x10", "squared-relu-20x10", "softplus-20x10", "gelu-20x10",
    "leaky-relu-20x10", "relu-biased-20x10", "relu-correlated-20x10", "relu-noisy-20x5",
]  # fmt: skip
REAL = [f"{table}-relu-{k}" for table in TABLES for k in (3, 5, 10)]


def test_names_are_stable_and_systematic():
    names = oh.problems.names()
    assert len(names) == len(set(names))
    assert names[: len(HAND_MADE)] == HAND_MADE
    hidden = {g for g in oh.activations.names(compared=True) if oh.activations.get(g).polynomial}
    grid = {
        f"{law}-{g.replace('_', '-')}-{structure}"
        for law in LAWS
        for g in oh.activations.names(compared=True)
        for structure in (["signs"] if g in hidden else STRUCTURES)
    }
    assert set(names) == {*HAND_MADE, *grid, *REAL}
    visible = len(oh.activations.names(compared=True)) - len(hidden)
    assert len(grid) == len(LAWS) * (visible * len(STRUCTURES) + len(hidden))
    assert set(LAWS) == {
        "gaussian", "correlated", "mixture", "laplace", "logistic", "student5", "uniform", "rotated-laplace",
        "rotated-uniform", "banana",
    }  # fmt: skip


@pytest.mark.parametrize("g", oh.activations.names(compared=True))
def test_truth_is_exact_and_repeatable(g):
    """y is the teacher's own, bit for bit; another seed is another teacher."""
    structures = ["signs"] if oh.activations.get(g).polynomial else list(STRUCTURES)
    for i, law in enumerate(LAWS):
        name = f"{law}-{g.replace('_', '-')}-{structures[i % len(structures)]}"
        problem = oh.problems.get(name)
        X, y, teacher = problem.sample(200, 3)
        assert X.shape == (200, problem.n_inputs)
        assert np.array_equal(y, teacher.predict(X))
        assert (teacher.n_hidden, teacher.activation.name) == (problem.n_hidden, g)
        again = problem.sample(200, 3)
        assert np.array_equal(X, again[0])
        assert teacher == again[2]
        other = problem.sample(200, 4)[2]
        assert not np.array_equal(y, other.predict(X))


@pytest.mark.parametrize("structure", STRUCTURES)
def test_teacher_has_the_structure_of_its_name(structure):
    problem = oh.problems.get(f"gaussian-relu-{structure}")
    for seed in range(3):
        net = problem.teacher(seed)
        values = np.linalg.svd(net.weights, compute_uv=False)
        if structure == "kappa5":
            assert values[0] / values[-1] == pytest.approx(5, rel=1e-12)
        elif structure in ("orthonormal", "narrow"):
            assert np.allclose(values, 1, rtol=1e-12)
        else:
            assert values[0] / values[-1] > 1.01  # random rows are not orthonormal
        both = structure in ("signs", "biased")
        assert (net.output.min() < 0 < net.output.max()) == both
        assert bool(np.any(net.bias)) == problem.bias == (structure == "biased")
        assert ("k < d" in problem.tags) == (problem.n_hidden < problem.n_inputs)


@pytest.mark.parametrize("law", [law for law in LAWS if law != "banana"])  # a log-density states no moments
def test_laws_have_the_stated_moments(law):
    """Mean and covariance within five standard errors of each entry; doubled they must fail."""
    d, n = 6, 40_000
    known = input_law(law, d)
    X = known.sample(n, 0)
    error = X.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(X.mean(axis=0) - known.mean) < 5 * error)
    products = np.einsum("ni,nj->nij", X - known.mean, X - known.mean)
    gap = np.abs(products.mean(axis=0) - known.cov)
    error = products.std(axis=0) / np.sqrt(n)
    assert np.all(gap < 5 * error)
    assert not np.all(np.abs(products.mean(axis=0) - 2 * known.cov) < 5 * error)
    if law not in ("correlated", "mixture"):
        assert np.allclose(known.cov, np.eye(d), atol=1e-12)


def test_laws_that_share_two_moments_differ_in_the_fourth():
    kurtosis = {"gaussian": 3.0, "laplace": 6.0, "logistic": 4.2, "uniform": 1.8}
    for law, stated in kurtosis.items():
        X = input_law(law, 4).sample(50_000, 1)
        fourth = np.mean(X**4, axis=0)
        error = np.std(X**4, axis=0) / np.sqrt(len(X))
        assert np.all(np.abs(fourth - stated) < 5 * error)
        others = [other for other in kurtosis.values() if other != stated]
        assert all(np.any(np.abs(fourth - other) > 5 * error) for other in others)


def test_banana_is_normalised_and_scored_by_its_own_density():
    """∫ f = 1 on a grid; E[S_1 x'] = I by Stein, within five standard errors, and not 2 I."""
    law = input_law("banana", 2)
    t = np.linspace(-9, 14, 700)
    grid = np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)
    assert np.exp(law.log_density(grid)).sum() * (t[1] - t[0]) ** 2 == pytest.approx(1, abs=1e-6)
    X = law.sample(20_000, 2)
    products = law.score(X, 1)[:, :, None] * X[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(X))
    assert np.all(np.abs(products.mean(axis=0) - np.eye(2)) < 5 * error)
    assert not np.all(np.abs(products.mean(axis=0) - 2 * np.eye(2)) < 5 * error)


@pytest.mark.parametrize("table", TABLES)
def test_real_tables_give_their_own_rows(table):
    inputs = TABLES[table]
    problem = oh.problems.get(f"{table}-relu-3")
    X, y, teacher = problem.sample(None, 0)
    assert X.shape == (inputs.n_rows, inputs.n_inputs) == (problem.n, problem.n_inputs)
    assert np.array_equal(y, teacher.predict(X))
    assert np.allclose(X.mean(axis=0), 0, atol=1e-12)
    assert np.allclose(X.std(axis=0), 1, rtol=1e-12)
    part = problem.sample(100, 5)[0]
    rows = {row.tobytes() for row in X}
    assert all(row.tobytes() in rows for row in part)
    assert not np.array_equal(part, problem.sample(100, 6)[0])
    with pytest.raises(ValueError, match="cannot be extended"):
        problem.sample(inputs.n_rows + 1, 0)


@pytest.mark.parametrize("name", REAL)
def test_hyperplanes_of_real_problems_cut_the_data(name):
    """Between the 20 and 80 % quantiles of every projection, one row of slack for the interpolation."""
    problem = oh.problems.get(name)
    X = problem.sample(None, 0)[0]
    for seed in range(2):
        net = problem.teacher(seed)
        share = np.mean(X @ net.weights.T + net.bias > 0, axis=0)
        slack = 1 / len(X)
        assert np.all((share >= 0.2 - slack) & (share <= 0.8 + slack))
        assert net.output.min() < 0 < net.output.max()
    assert "real inputs" in problem.tags


def test_sizes_can_be_asked_for_in_the_name():
    problem = oh.problems.get("laplace-relu-orthonormal-50x50")
    assert (problem.n_inputs, problem.n_hidden) == (50, 50)
    X, y, teacher = problem.sample(64, 0)
    assert np.array_equal(y, teacher.predict(X))
    assert oh.problems.get("wine-tanh-4").n_hidden == 4


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("laplce-relu-signs", "did you mean laplace-relu-signs"),
        ("gaussian-relu-signs-0x3", "unknown problem"),
        ("gaussian-relu-signs-2000x3", "up to 1000"),
        (None, "unknown problem"),
    ],
)
def test_unknown_names_are_refused_with_a_near_one(name, words):
    with pytest.raises(ValueError, match=words):
        oh.problems.get(name)


def test_more_orthonormal_rows_than_inputs_are_refused():
    with pytest.raises(ValueError, match="room for 3 orthonormal rows"):
        oh.problems.get("gaussian-relu-orthonormal-3x5").sample(10, 0)


def test_noise_is_the_stated_share_of_y():
    problem = oh.problems.get("relu-noisy-20x5")
    X, y, teacher = problem.sample(20_000, 0)
    clean = teacher.predict(X)
    share = np.std(y - clean) / clean.std()
    assert share == pytest.approx(0.1, abs=5 * 0.1 / np.sqrt(2 * len(y)))


def test_papers_teachers_have_the_printed_singular_values():
    """σ evenly spaced from 1 to κ, unscaled; rows of the catalogue are the same over √κ."""
    net = conditioned_teacher(12, 5, 2.0, "relu", np.random.default_rng(0), signed=True)
    values = np.linalg.svd(net.weights, compute_uv=False)[::-1]
    assert np.allclose(values, np.linspace(1, 2, 5), rtol=1e-12)
    assert not np.allclose(values, np.geomspace(1, 2, 5), rtol=1e-3)
    scaled = np.linalg.svd(oh.problems.get("gaussian-relu-kappa5").teacher(0).weights, compute_uv=False)
    assert np.allclose(scaled[::-1] * np.sqrt(5), np.linspace(1, 5, 8), rtol=1e-12)


def test_the_command_lists_a_part_of_the_catalogue():
    from click.testing import CliRunner

    from onehidden_papers.commands.problems import command

    done = CliRunner().invoke(command, ["laplace-*-biased", "--json"])
    listed = [p["name"] for p in json.loads(done.stdout)]
    assert len(listed) == 10
    assert all(name.startswith("laplace-") and name.endswith("-biased") for name in listed)
    with pytest.raises(ValueError, match="no problem matches"):
        CliRunner().invoke(command, ["nothing-*"], catch_exceptions=False)


def test_problems_of_one_seed_share_no_draws():
    first, second = (oh.problems.get(f"{law}-relu-orthonormal-8x8") for law in ("gaussian", "mixture"))
    a, b = first.teacher(3).weights, second.teacher(3).weights
    # Two random rotations: an entry of a product has standard deviation 1/√8; equal ones would give I.
    assert np.abs(a @ b.T - np.eye(8)).max() > 0.5
    X, _, _ = first.sample(64, 3)
    # Rows of the same stream as the teacher would repeat its normal draws before they are made orthogonal.
    assert not np.isclose(np.linalg.qr(X[:8])[0].T, a, atol=1e-6).any(axis=None)
    noisy = replace(first, noise=0.5)
    _, y, teacher = noisy.sample(64, 3)
    noise = (y - teacher.predict(X)) / np.std(teacher.predict(X)) / 0.5
    assert not np.isin(np.round(noise, 9), np.round(X, 9)).any()
    assert np.array_equal(noisy.sample(64, 3)[1], y)
