"""The network as a module of PyTorch or a fitted estimator of scikit-learn."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from onehidden.exports.slope import slope_below

if TYPE_CHECKING:
    from onehidden.network import OneHiddenNet

_SKLEARN = {"relu": "relu", "tanh": "tanh", "sigmoid": "logistic", "linear": "identity"}
_LINEAR = {"relu": (1.0, -1.0), "linear": (1.0,)}  # signs of the units that make a linear function


def to_torch(net: OneHiddenNet) -> Any:
    """A ``torch.nn.Module`` in float64, (n, d) -> (n,) or (n, q), with trainable ``hidden`` and ``readout``.

    A linear part is the layer ``beside``.
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        raise ValueError("to_torch needs PyTorch, which is not installed: pip install torch") from None
    g = _torch_activation(torch, net.activation.name, slope_below(net))

    class OneHiddenModule(torch.nn.Module):
        """y = c + <v, x> + sum_i w_i g(<a_i, x> + b_i)."""

        def __init__(self) -> None:
            super().__init__()
            self.hidden = torch.nn.Linear(net.n_inputs, net.n_hidden, dtype=torch.float64)
            self.readout = torch.nn.Linear(net.n_hidden, net.n_outputs, dtype=torch.float64)
            if net.has_linear:
                self.beside = torch.nn.Linear(net.n_inputs, net.n_outputs, bias=False, dtype=torch.float64)

        def forward(self, x: object) -> object:
            out = self.readout(g(self.hidden(x)))
            out = out + self.beside(x) if net.has_linear else out
            return out.squeeze(-1) if net.output.ndim == 1 else out

    module = OneHiddenModule()
    with torch.no_grad():
        module.hidden.weight.copy_(torch.tensor(net.weights))
        module.hidden.bias.copy_(torch.tensor(net.bias))
        module.readout.weight.copy_(torch.tensor(net.output.reshape(net.n_hidden, -1).T))
        module.readout.bias.copy_(torch.tensor(np.atleast_1d(net.intercept)))
        if net.has_linear:
            module.beside.weight.copy_(torch.tensor(net.linear.reshape(net.n_inputs, -1).T))
    return module


def _torch_activation(torch: ModuleType, name: str, below: float) -> Callable[[Any], Any]:
    functional = torch.nn.functional
    return {
        "relu": torch.relu,
        "leaky_relu": lambda z: functional.leaky_relu(z, below),
        "squared_relu": lambda z: torch.relu(z) ** 2,
        "cubed_relu": lambda z: torch.relu(z) ** 3,
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "erf": lambda z: 0.5 * math.sqrt(math.pi) * torch.erf(z),
        # The default threshold of 20 is linear above it, which costs 2e-9.
        "softplus": lambda z: functional.softplus(z, threshold=40.0),
        "gelu": functional.gelu,
        "abs": torch.abs,
        "quadratic": lambda z: z * z,
        "linear": lambda z: z,
    }[name]


def to_sklearn(net: OneHiddenNet) -> Any:
    """A fitted ``sklearn.neural_network.MLPRegressor`` with the same predictions.

    Raises
    ------
    ValueError for an activation that scikit-learn does not have, and for a linear part beside units that
    cannot say one exactly (ReLU can: v = relu(v) - relu(-v)).
    """
    from sklearn.neural_network import MLPRegressor

    name = net.activation.name
    if name not in _SKLEARN:
        raise ValueError(
            f"scikit-learn's MLPRegressor has no {name} activation, only {', '.join(_SKLEARN)}: use "
            "OneHiddenNet.predict, to_onnx or to_torch instead"
        )
    weights, bias, output = net.weights, net.bias, net.output.reshape(net.n_hidden, -1)
    if net.has_linear:
        if name not in _LINEAR:
            raise ValueError(
                f"scikit-learn's MLPRegressor has no linear part beside {name} units: use "
                "OneHiddenNet.predict, to_onnx or to_torch instead"
            )
        rows = net.linear.reshape(net.n_inputs, -1).T
        for sign in _LINEAR[name]:
            weights, output = np.vstack([weights, sign * rows]), np.vstack([output, sign * np.eye(len(rows))])
            bias = np.append(bias, np.zeros(len(rows)))
    model = MLPRegressor(hidden_layer_sizes=(len(weights),), activation=_SKLEARN[name])
    model.coefs_ = [weights.T.copy(), output.copy()]
    model.intercepts_ = [bias.copy(), np.atleast_1d(net.intercept).astype(float)]
    model.n_features_in_ = net.n_inputs  # pyright: ignore[reportAttributeAccessIssue]
    model.n_layers_ = 3
    model.n_outputs_ = net.n_outputs
    model.n_iter_ = 0
    model.t_ = 0
    model.out_activation_ = "identity"
    return model
