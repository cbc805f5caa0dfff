"""Places of kinks whose rows are known follow from a few typical answers, however far off they begin."""

import numpy as np

from onehidden.oracle.kinked import placed
from onehidden.oracle.layer import Layer

NOISE = 1e-3 / np.sqrt(12)  # of answers rounded to three decimals


def hinges(bias, rows, output, linear):
    return Layer(rows, bias, output, np.array([0.3, -0.2]), linear)


def function(layer, U):
    """Written apart from the library."""
    return (
        layer.constant
        + U @ layer.linear
        + sum(
            np.outer(abs(U @ a + b) / 2, w)
            for a, b, w in zip(layer.weights, layer.bias, layer.output, strict=True)
        )
    )


def test_biases_that_are_off_by_scales_are_found_to_the_noise_of_the_answers():
    rng = np.random.default_rng(0)
    k, d, n = 12, 40, 1000
    rows = rng.standard_normal((k, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    output = rng.uniform(0.5, 1.5, (k, 2)) * rng.choice([-1.0, 1.0], (k, 2))
    linear = rng.standard_normal((d, 2))
    true = hinges(0.3 * rng.standard_normal(k), rows, output, linear)
    U = rng.standard_normal((n, d))
    Y = np.round(function(true, U), 3)
    off = rng.uniform(-3, 3, k)
    off[:2] = 0.0
    start = hinges(true.bias + off, rows, output, linear)
    found = placed(start, np.full(k, 2.0), U, Y)
    # Slopes of ±output / 2 that differ between questions: noise / (output sqrt(n)), twice over for sharing.
    assert np.max(np.abs(found.bias - true.bias)) < 10 * 2 * NOISE / 0.5 / np.sqrt(n)
    assert np.max(np.abs(found.constant - true.constant)) < 1e-3
    assert np.max(np.abs(start.bias - true.bias)) > 1


def test_biases_that_are_right_stay_right_without_noise():
    rng = np.random.default_rng(1)
    rows = np.linalg.qr(rng.standard_normal((10, 10)))[0][:4]
    layer = hinges(rng.standard_normal(4), rows, rng.standard_normal((4, 2)), rng.standard_normal((10, 2)))
    U = rng.standard_normal((300, 10))
    found = placed(layer, np.full(4, 0.1), U, function(layer, U))
    assert np.max(np.abs(found.bias - layer.bias)) < 1e-12
