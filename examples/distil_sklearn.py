"""Distil a trained scikit-learn network back to its exact units, through its ``predict`` alone.

python examples/distil_sklearn.py
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import onehidden as oh


def main() -> oh.Recovery:
    """Train, ask, compare."""
    X, y = load_diabetes(return_X_y=True)
    network = MLPRegressor(hidden_layer_sizes=(12,), activation="tanh", solver="lbfgs", random_state=0)
    model = make_pipeline(StandardScaler(), network)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)

    # Nothing but the function is handed over; X only says where typical inputs lie.
    r = oh.recover_oracle(model.predict, X.shape[1], activation="tanh", inputs=X)
    print(f"{r.status}: {r.network.n_hidden} units from {r.queries} queries in {r.seconds:.1f} s")
    print(r.message)

    # The weights inside, with the scaler folded in: <a, (x - m) / s> + b.
    scaler = model[0]
    weights = network.coefs_[0].T / scaler.scale_
    inside = oh.OneHiddenNet(
        weights,
        network.coefs_[1][:, 0],
        network.intercepts_[0] - weights @ scaler.mean_,
        network.intercepts_[1][0],
        "tanh",
    )
    m = oh.match(r.network, inside)
    print(f"worst relative error of a row {m.max_error:.1e}, of an output weight {m.output_error:.1e}")
    told = r.network.predict(X)
    print(f"largest difference from predict on the table {np.max(np.abs(told - model.predict(X))):.1e}")
    return r


if __name__ == "__main__":
    main()
