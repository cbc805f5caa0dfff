"""OneHiddenNet: y = c + <v, x> + sum_i w_i g(<a_i, x> + b_i), one output or several, as a frozen record."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden import activations, exports
from onehidden.activations import Activation
from onehidden.run import fingerprint

FORMAT_VERSION = 2  # since 2 with a digest, several outputs and a linear part
_MARK = "onehidden"


@dataclass(frozen=True, init=False, eq=False)
class OneHiddenNet:
    """A network with one hidden layer.

    Parameters
    ----------
    weights : array_like of shape (k, d)
        Rows a_i.
    output : array_like of shape (k,) or (k, q)
        Output weights w_i, for q outputs over one hidden layer a column each.
    bias : array_like of shape (k,), optional
        Hidden biases b_i; zeros by default.
    intercept : float or array_like of shape (q,)
        The constant c.
    activation : str or Activation
        A name of ``activations.names()``, or an ``Activation``.
    linear : array_like of shape (d,) or (d, q), optional
        Slopes v of a linear part; zeros by default.

    Examples
    --------
    >>> import onehidden as oh
    >>> net = oh.OneHiddenNet([[1.0, 1.0], [1.0, -1.0]], [1.0, 2.0], intercept=0.5)
    >>> net
    OneHiddenNet(2 relu units of 2 inputs)
    >>> net.predict([[3.0, 1.0], [0.0, -1.0]]).tolist()
    [8.5, 2.5]
    """

    weights: Float[np.ndarray, "k d"]
    bias: Float[np.ndarray, " k"]
    output: Float[np.ndarray, " k"] | Float[np.ndarray, "k q"]
    intercept: Any  # a float; (q,) where there are several outputs
    activation: Activation
    linear: Float[np.ndarray, " d"] | Float[np.ndarray, "d q"]

    def __init__(
        self,
        weights: npt.ArrayLike,
        output: npt.ArrayLike,
        bias: npt.ArrayLike | None = None,
        intercept: npt.ArrayLike = 0.0,
        activation: str | Activation = "relu",
        linear: npt.ArrayLike | None = None,
    ) -> None:
        weights, output = _numbers("weights", weights), _numbers("output", output)
        if weights.ndim != 2 or 0 in weights.shape:
            raise ValueError(f"weights must be a (k, d) matrix, got shape {weights.shape}")
        k, d = weights.shape
        if output.ndim not in (1, 2) or len(output) != k or 0 in output.shape:
            raise ValueError(f"output must have one entry a row of weights ({k}), got {output.shape}")
        tail = output.shape[1:]
        intercept = _numbers("intercept", intercept)
        if intercept.shape not in ((), (1,), tail):
            raise ValueError(f"intercept must be one number, or one per output, got shape {intercept.shape}")
        parts = {
            "weights": weights,
            "output": output,
            "bias": np.zeros(k) if bias is None else _numbers("bias", bias),
            "linear": np.zeros((d, *tail)) if linear is None else _numbers("linear", linear),
            "intercept": np.array(np.broadcast_to(intercept.reshape(intercept.shape if tail else ()), tail)),
        }
        for name, shape in (("bias", (k,)), ("linear", (d, *tail))):
            if parts[name].shape != shape:
                raise ValueError(f"{name} must have the shape {shape}, got {parts[name].shape}")
        for name, values in parts.items():
            if not np.all(np.isfinite(values)):
                raise ValueError(f"{name} must be finite: it holds NaN or infinity")
            values.setflags(write=False)
            object.__setattr__(self, name, values)
        if not tail:
            object.__setattr__(self, "intercept", float(parts["intercept"]))
        object.__setattr__(self, "activation", activations.get(activation))

    @property
    def n_hidden(self) -> int:
        return self.weights.shape[0]

    @property
    def n_inputs(self) -> int:
        return self.weights.shape[1]

    @property
    def n_outputs(self) -> int:
        return 1 if self.output.ndim == 1 else self.output.shape[1]

    @property
    def has_linear(self) -> bool:
        """Whether there is a linear part."""
        return bool(np.any(self.linear))

    def one_output(self, which: int = 0) -> OneHiddenNet:
        """Return the network of one output of several.

        Parameters
        ----------
        which : int
            Number of the output, from 0.

        Returns
        -------
        OneHiddenNet
            The network with ``output`` of shape (k,).
        """
        if self.output.ndim == 1:
            return self
        level, linear = float(self.intercept[which]), self.linear[:, which]
        return OneHiddenNet(self.weights, self.output[:, which], self.bias, level, self.activation, linear)

    def __repr__(self) -> str:
        several = "" if self.output.ndim == 1 else f", {self.n_outputs} outputs"
        beside = " and a linear part" if self.has_linear else ""
        units = f"{self.n_hidden} {self.activation.name} units of {self.n_inputs} inputs"
        return f"OneHiddenNet({units}{beside}{several})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OneHiddenNet) and all(
            np.array_equal(a, b) for a, b in zip(self._fields(), other._fields(), strict=True)
        )

    def __hash__(self) -> int:
        return hash(tuple(np.asarray(part).tobytes() for part in self._fields()))

    def _fields(self) -> tuple[Any, ...]:
        return self.weights, self.bias, self.output, self.intercept, self.activation.name, self.linear

    def predict(self, X: npt.ArrayLike) -> np.ndarray:
        """Compute the network's output.

        Parameters
        ----------
        X : array_like of shape (n, d)
            Rows.

        Returns
        -------
        ndarray of shape (n,) or (n, q)
            The output at each row.
        """
        X = np.asarray(X, dtype=float)
        if X.ndim != 2 or X.shape[1] != self.n_inputs:
            raise ValueError(f"X must be (n, {self.n_inputs}), one row as [x], got shape {X.shape}")
        found = self.activation(X @ self.weights.T + self.bias) @ self.output + self.intercept
        return found + X @ self.linear if self.has_linear else found

    def canonical(
        self, beside: bool | None = None, *, ordered: bool = True, turned: bool = True
    ) -> OneHiddenNet:
        """The representative of this function's symmetry class: unit rows, fixed signs, sorted units.

        Rows have unit norm where g is homogeneous. Where reversing a unit changes only w and c (odd, even,
        sigmoid), the sign makes w positive (of several outputs the largest), or for even g the largest
        weight. With a linear part, the orientation of units such as ReLU, leaky ReLU, softplus and GELU is
        a convention, relu(t) = t + relu(-t): a combination of the weights of each unit with fixed
        coefficients (``facing``) is positive, and the linear part takes the difference. A bias of exp is a
        factor of w; one of sin lies within a quarter of its period.

        Parameters
        ----------
        beside : bool, optional
            Whether a linear part is free; by default whether there is one.
        ordered : bool
            Whether units are sorted.
        turned : bool
            Whether units may change their sign.

        Returns
        -------
        OneHiddenNet
            The same function.
        """
        A, b, w, c = self.weights.copy(), self.bias.copy(), self.output.copy(), self.intercept
        g, v = self.activation, self.linear
        if g.homogeneity is not None:
            norm = np.linalg.norm(A, axis=1)
            scale = np.where(norm > 0, norm, 1.0)
            A, b, w = A / scale[:, None], b / scale, (w.T * scale**g.homogeneity).T
        if g.multiplicative:
            b, w = np.zeros_like(b), (w.T * g(b)).T
        reversal, linear = g.reversal if turned else None, self.has_linear if beside is None else beside
        if reversal is not None and (g.sign_free or (linear and reversal.degree == 1)):
            by = w.reshape(len(w), -1) if reversal.parity < 0 and not g.half_period else A
            largest = by[np.arange(len(A)), np.argmax(np.abs(by), axis=1)]
            turn = (largest if g.sign_free else facing(A)) < 0
            # g(t) = parity g(-t) + p_0 - p_1 t, from g(-s) = parity g(s) + p_0 + p_1 s at s = -t
            level, slope = (*reversal.polynomial, 0.0, 0.0)[:2]
            v = v - slope * A[turn].T @ w[turn]
            c = c + (level - slope * b[turn]) @ w[turn]
            sign = np.where(turn, -1.0, 1.0)
            A, b, w = A * sign[:, None], b * sign, np.where(turn, reversal.parity * w.T, w.T).T
        if turned and g.half_period:
            turns = np.round(b / g.half_period)
            b, w = b - turns * g.half_period, np.where(turns % 2, -w.T, w.T).T
        keys = np.round(np.column_stack([w, A, b]), 9) + 0.0
        order = np.lexsort(keys.T[::-1])[::-1] if ordered else np.arange(len(w))
        return OneHiddenNet(A[order], w[order], b[order], c, g, v)

    def save(self, path: str | Path) -> None:
        """Write a safetensors file with a JSON header.

        Parameters
        ----------
        path : str or Path
            The file, in a folder that exists.
        """
        from safetensors.numpy import save_file

        if not isinstance(path, (str, Path)) or not Path(path).parent.is_dir():
            raise ValueError(f"cannot save to {path!r}: name a file in a folder that exists")
        tensors = {
            "weights": self.weights,
            "bias": self.bias,
            "output": self.output,
            "intercept": np.array(self.intercept).reshape(-1),
        }
        if self.has_linear:
            tensors["linear"] = self.linear
        header = {
            "format_version": FORMAT_VERSION,
            "activation": self.activation.name,
            "digest": _digest(self.activation.name, tensors),
        }
        save_file(tensors, str(path), metadata={_MARK: json.dumps(header)})

    @classmethod
    def load(
        cls, path: str | Path, activation: Activation | Callable[[Any], Any] | None = None
    ) -> OneHiddenNet:
        """Read a file that ``save`` wrote, in this or an earlier version.

        Parameters
        ----------
        path : str or Path
            The file.
        activation : Activation or callable, optional
            The activation, of the name that was saved, where it is not one of the library.

        Returns
        -------
        OneHiddenNet
            The network.
        """
        from safetensors import SafetensorError, safe_open

        if not isinstance(path, (str, Path)) or not Path(path).is_file():
            raise ValueError(f"no model file at {path}")
        try:
            with safe_open(str(path), framework="numpy") as file:
                header = json.loads((file.metadata() or {}).get(_MARK, "null"))
                tensors = {name: file.get_tensor(name) for name in file.keys()}
        except (SafetensorError, OSError, ValueError) as error:
            raise ValueError(f"{path} is not a onehidden model file: {error}") from None
        if not isinstance(header, dict) or not {"weights", "bias", "output", "intercept"} <= tensors.keys():
            raise ValueError(f"{path} is a safetensors file, but not of a onehidden model")
        version, name = header.get("format_version"), str(header.get("activation"))
        if type(version) is not int or version > FORMAT_VERSION:
            raise ValueError(
                f"{path} has model format {version}, this version reads up to {FORMAT_VERSION}: "
                "upgrade onehidden"
            )
        own = None if activation is None else activations.get(activation)
        if own is None and name not in activations.names():
            raise ValueError(
                f"{path} has the activation {name!r}, which is not part of this library: give it as "
                "activation="
            )
        if own is not None and own.name != name:
            raise ValueError(f"{path} has the activation {name!r}, not {own.name!r}")
        digest = _digest(name, tensors)
        try:
            if header.get("digest", digest if version < 2 else None) != digest:
                raise ValueError("its numbers are not those that were saved")
            return cls(**tensors, activation=own or name)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged: {error}") from None

    to_onnx, to_torch, to_sklearn = exports.to_onnx, exports.to_torch, exports.to_sklearn
    to_python = exports.to_python


def facing(weights: Float[np.ndarray, "k d"]) -> Float[np.ndarray, " k"]:
    """Combinations of the weights of each unit whose signs orient units beside a linear part.

    The coefficients lie between 1 and 10 and have no simple ratios: weights of one size and opposite signs,
    of which noise decides which is larger, give no zero.
    """
    j = np.arange(1, weights.shape[1] + 1)
    return weights @ 10.0 ** (np.sqrt(13) * j % 1)


def _digest(activation: str, tensors: dict[str, np.ndarray]) -> str:
    return fingerprint(activation, *(tensors[name] for name in sorted(tensors)))


def _numbers(name: str, values: npt.ArrayLike) -> np.ndarray:
    """A float64 copy of real numbers; anything else is refused by name."""
    try:
        array = np.array(values, order="C")
        if array.dtype.kind in "biuf":
            return array.astype(float)
    except ValueError:  # rows of unequal length
        pass
    raise ValueError(f"{name} must be real numbers, got {type(values).__name__} that is not")
