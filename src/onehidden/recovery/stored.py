"""A recovery in a folder: the model, everything else as JSON with a digest, the covariance as a tensor."""

from __future__ import annotations

import enum
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from onehidden import families
from onehidden.activations import Activation
from onehidden.certify.certificate import Alternative, AlternativeKind
from onehidden.certify.errors import ParameterRecord
from onehidden.certify.units import Cause, UnitStatus, UnitVerdict
from onehidden.families import Family
from onehidden.network import OneHiddenNet
from onehidden.run import fingerprint

if TYPE_CHECKING:
    from onehidden.recovery.record import Recovery

FORMAT_VERSION = 4  # since 3 the record has a digest, since 4 checks are evaluated, not asked


def save_recovery(self: Recovery, directory: str | Path) -> None:
    """Write ``model.safetensors``, ``recovery.json`` and what bands are made from into a folder.

    Parameters
    ----------
    directory : str or Path
        The folder; it is made where it does not exist.
    """
    from safetensors.numpy import save_file

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    self.network.save(folder / "model.safetensors")
    if self.covariance is not None:
        values = {"covariance": np.ascontiguousarray(self.covariance)}
        save_file(values, str(folder / "covariance.safetensors"))
    kept = to_dict(self)
    text = json.dumps({**kept, "digest": _digest(kept)}, indent=1, allow_nan=False)
    (folder / "recovery.json").write_text(text)


def to_dict(self: Recovery) -> dict[str, Any]:
    """Write everything but the model as plain JSON values; numbers that are not finite become text.

    Returns
    -------
    dict
        The values by name.
    """
    kept = plain({f.name: getattr(self, f.name) for f in fields(self) if f.name != "covariance"})
    assert isinstance(kept, dict)
    for unit, own in zip(kept["units"], self.units, strict=True):
        for name in ("weights", "bias", "output", "errors"):  # those of the network
            unit.pop(name, None)
        unit["cause"] = None if own.cause is None else own.cause.name
    first = {name: getattr(self, name) for name in ("predictions_in_words", "units_in_words")}
    return (
        first
        | kept
        | {
            "format_version": FORMAT_VERSION,
            "converged": self.converged,
            "assumptions": list(self.assumptions),
            "mean_slopes": plain(self.mean_slopes),
            "covariance": None if self.covariance is None else fingerprint(self.covariance),
        }
    )


def plain(value: object) -> object:
    """A value as JSON can hold it: arrays as lists, numbers that are not finite as text."""
    if isinstance(value, OneHiddenNet):
        names = ("weights", "output", "bias", "intercept", "linear")
        return {"activation": value.activation.name, **{n: plain(getattr(value, n)) for n in names}}
    if isinstance(value, Family):
        return plain(value.stored())
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, enum.Enum) or (isinstance(value, float) and not np.isfinite(value)):
        return str(value)
    return value


def load_recovery(
    directory: str | Path, activation: Activation | Callable[[Any], Any] | None = None
) -> Recovery:
    """Read a recovery from a folder.

    Parameters
    ----------
    directory : str or Path
        The folder that ``Recovery.save`` or the command ``recover`` wrote, in this or an earlier version.
    activation : Activation or callable, optional
        The activation, of the name that was saved, where it is not one of the library.

    Returns
    -------
    Recovery
        The recovery, with its network.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import onehidden as oh
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> found = oh.recover(X, np.abs(X[:, 0]), hidden=1, activation="abs", bias=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found.save(f"{folder}/run")
    ...     again = oh.load_recovery(f"{folder}/run")
    >>> again.status == found.status
    True
    """
    from onehidden.recovery.record import Recovery

    folder = Path(directory)
    path = folder / "recovery.json"
    if not path.is_file():
        raise ValueError(f"no recovery.json in {folder}: give the folder of a finished run")
    try:
        data = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}") from None
    version = data.get("format_version") if isinstance(data, dict) else None
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ValueError(f"{path} has run format {version}, this version reads up to {FORMAT_VERSION}")
    digest = data.pop("digest", None)
    if version >= 3 and digest != _digest(data):
        raise ValueError(f"{path} is damaged: it does not say what was saved")
    family = (data.get("family") or {}).get("name")
    if family not in (None, *families.names()):
        raise ValueError(f"{path}: the family {family!r} is not part of this library: upgrade onehidden")
    network = OneHiddenNet.load(folder / "model.safetensors", activation)
    try:
        for other in filter(None, (one["network"] for one in data.get("alternatives", []))):
            if other["activation"] == network.activation.name:
                other["activation"] = network.activation
        _must_be_sound(data, network)
        covariance = _covariance(folder / "covariance.safetensors", data.pop("covariance", None))
        units = data.pop("units", [])
        found = replace(_read(Recovery, data | {"network": None}), network=network, covariance=covariance)
        errors = found.standard_errors
        return replace(found, units=tuple(_unit(one, network, errors) for one in units))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is damaged or does not belong to its model: {error}") from None


def _digest(record: dict[str, Any]) -> str:
    """A hash of plain JSON values, however they are spaced and ordered in the file."""
    return fingerprint(json.dumps(record, sort_keys=True))


def _must_be_sound(data: dict[str, Any], network: OneHiddenNet) -> None:
    """Refuse a record that contradicts its model."""
    if not np.array_equal(_numbers(data["network"]["weights"]), network.weights):
        raise ValueError("its weights are not those of model.safetensors")
    if len(data["feature_names"]) != network.n_inputs:
        raise ValueError("it does not name one feature an input")
    if not data["checks"]:
        raise ValueError("it has no checks")


_NOT_FINITE = {"inf": np.inf, "-inf": -np.inf, "nan": np.nan}  # which JSON has as text
# What versions up to 0.2 wrote otherwise: a field of checks, kinds of alternatives.
_FORMER_FIELDS = {"asked": "evaluated"}
_FORMER_KINDS = {"one unit more": "a larger model", "one unit fewer": "a smaller model"}


def _numbers(value: Any) -> Any:
    """A number, or an array of the numbers in a list; None stays None."""
    if isinstance(value, list):
        return np.array([_numbers(one) for one in value], dtype=float)
    return value if value is None else float(_NOT_FINITE[value] if isinstance(value, str) else value)


def _read(hint: Any, value: Any) -> Any:
    """A value of JSON as an annotation says; fields that a record lacks have their defaults."""
    origin, parts = get_origin(hint), get_args(hint)
    if value is None or hint in (int, str, bool) or hint == dict[str, Any]:
        return value
    if origin in (Union, UnionType):
        return _read(parts[0], value)
    if origin is dict:
        return {parts[0](key): _read(parts[1], one) for key, one in value.items()}
    if origin in (tuple, list):
        return origin(value if parts[0] is Any else (_read(parts[0], one) for one in value))
    if hint is AlternativeKind:
        return AlternativeKind(_FORMER_KINDS.get(value, value))
    if hint is OneHiddenNet:
        return OneHiddenNet(**value)
    if hint is Family:
        return families.from_stored({name: _NOT_FINITE.get(one, one) for name, one in value.items()})
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return hint(value)
    if not is_dataclass(hint):
        return _numbers(value)
    hints, given = get_type_hints(hint), {_FORMER_FIELDS.get(name, name): one for name, one in value.items()}
    if hint is Alternative:
        given = {"needed": "inf"} | given  # only those that were not ruled out were kept
    return hint(**{name: _read(hints[name], one) for name, one in given.items() if name in hints})


def _unit(record: dict[str, Any], network: OneHiddenNet, errors: ParameterRecord) -> UnitVerdict:
    i = int(record["index"])
    return UnitVerdict(
        i, network.weights[i], float(network.bias[i]), _numbers(network.output[i].tolist()),
        (errors.weights[i], float(errors.bias[i]), _numbers(errors.output[i].tolist())),
        _numbers(record["share"]), UnitStatus(record["status"]), str(record["reason"]),
        None if record.get("cause") is None else Cause[record["cause"]], int(record.get("side", 0)),
    )  # fmt: skip


def _covariance(path: Path, digest: str | None) -> np.ndarray | None:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    if digest is None:
        return None
    try:
        found = load_file(str(path))["covariance"]
    except (SafetensorError, OSError, KeyError) as error:
        raise ValueError(f"its {path.name} cannot be read: {error}") from None
    if fingerprint(found) != digest:
        raise ValueError(f"its {path.name} does not hold what was saved")
    return found
