"""Places of kinks whose rows are known follow from a few typical answers, however far off they begin."""

import numpy as np

from onehidden import activations
from onehidden.fit.parametrisation import Parametrisation
from onehidden.oracle.layer import Layer
from onehidden.oracle.search import placed


def hinges(bias, rows, output, linear):
    form = Parametrisation(activations.get("relu"), 40, 12, True, skip=True, symmetrised=True, outputs=2)
    return Layer(form, rows, output, bias, linear, np.array([0.3, -0.2]))


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
    # The last grid has cells of 2 * 3 * 2 / 80 / 4**3; the final optimisation begins there.
    assert np.max(np.abs(found.bias - true.bias)) < 0.01
    assert np.max(np.abs(found.constant - true.constant)) < 0.01
    assert np.max(np.abs(start.bias - true.bias)) > 1
