"""The atlas of κ_m against closed forms and differences of the activation itself."""

from __future__ import annotations

import numpy as np

from onehidden_papers.reproductions.atlas import LAWS, mixture, values, weights
from onehidden_papers.reproductions.experiment import kappa_4


def _kappa(law, name, m):
    return float(weights(law, m) @ values(name))


def test_fourth_order_of_relu_under_mixtures_is_the_closed_form():
    for centre in (0.5, 1.0, np.sqrt(3)):
        assert abs(_kappa(mixture(centre), "relu", 4) - kappa_4(np.array([centre]))[0]) < 1e-9
    assert abs(_kappa(mixture(0.5), "relu", 4)) > 0.2  # zero must not pass


def test_orders_agree_with_monte_carlo_of_derivatives():
    law = LAWS["logistic"]
    t = law.sample(200_000, 0).ravel()
    s = np.tanh(t)
    for m, derivative in ((1, 1 - s**2), (3, -2 * (1 - s**2) * (1 - 3 * s**2))):
        error = derivative.std() / np.sqrt(len(t))
        assert abs(_kappa(law, "tanh", m) - derivative.mean()) < 4 * error
        assert abs(derivative.mean()) > 20 * error
    assert abs(_kappa(law, "tanh", 2)) < 1e-9


def test_laws_without_a_score_have_none():
    assert weights(LAWS["Laplace"], 4) is None
    assert weights(LAWS["uniform"], 1) is None
