"""A recovery in a folder: the model, everything else as JSON with a digest, the covariance as a tensor."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onehidden import families
from onehidden.certify.certificate import Alternative, AlternativeKind, Status
from onehidden.certify.errors import ParameterRecord
from onehidden.certify.units import Cause, UnitStatus, UnitVerdict
from onehidden.checks import About, Check
from onehidden.families import Family
from onehidden.network import OneHiddenNet
from onehidden.recovery.prediction import Prediction
from onehidden.recovery.record import FORMAT_VERSION, Recovery
from onehidden.run import TraceRecord, fingerprint


def save_recovery(record: Recovery, directory: str | Path) -> None:
    """Write ``model.safetensors``, ``recovery.json`` and, where there is one, ``covariance.safetensors``."""
    from safetensors.numpy import save_file

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    record.network.save(folder / "model.safetensors")
    if record.covariance is not None:
        values = {"covariance": np.ascontiguousarray(record.covariance)}
        save_file(values, str(folder / "covariance.safetensors"))
    kept = to_dict(record)
    text = json.dumps({**kept, "digest": _digest(kept)}, indent=1, allow_nan=False)
    (folder / "recovery.json").write_text(text)


def to_dict(record: Recovery) -> dict[str, Any]:
    """Everything but the model, as plain JSON values; numbers that are not finite become text."""
    kept = plain({f.name: getattr(record, f.name) for f in fields(record) if f.name != "covariance"})
    assert isinstance(kept, dict)
    for unit, own in zip(kept["units"], record.units, strict=True):
        for name in ("weights", "bias", "output", "errors"):  # those of the network
            unit.pop(name, None)
        unit["cause"] = None if own.cause is None else own.cause.name
    return kept | {
        "format_version": FORMAT_VERSION,
        "converged": record.converged,
        "assumptions": list(record.assumptions),
        "mean_slopes": plain(record.mean_slopes),
        "covariance": None if record.covariance is None else fingerprint(record.covariance),
    }


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


def load_recovery(directory: str | Path) -> Recovery:
    """Read a recovery from a folder.

    Parameters
    ----------
    directory : str or Path
        The folder that ``Recovery.save`` or the command ``recover`` wrote, in this or an earlier version.

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
    stored = data.get("family")
    family = stored.get("name") if isinstance(stored, dict) else None
    if family is not None and family not in families.names():
        raise ValueError(
            f"{path}: the family {family!r} is not part of this library: upgrade onehidden, or add the "
            "family to it"
        )
    network = OneHiddenNet.load(folder / "model.safetensors")
    try:
        _must_be_sound(data, network)
        # Older records lack the newer fields, which then have their defaults.
        kept = {f.name: data[f.name] for f in fields(Recovery) if f.name in data}
        values = {name: _READERS[name](value) if name in _READERS else value for name, value in kept.items()}
        values["network"], errors = network, values["standard_errors"]
        values["units"] = tuple(_unit(one, network, errors) for one in data.get("units", []))
        values["covariance"] = _covariance(folder / "covariance.safetensors", data.get("covariance"))
        others = [one.network for one in values.get("alternatives", ()) if one.network is not None]
        if any(other.n_inputs != network.n_inputs for other in others):
            raise ValueError("an alternative has other inputs than the network")
        if (prediction := data.get("prediction")) is not None:
            values["prediction"] = Prediction.from_dict(prediction, network)
        return Recovery(**values)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is damaged or does not belong to its model: {error}") from None


def _digest(record: dict[str, Any]) -> str:
    """A hash of plain JSON values, however they are spaced and ordered in the file."""
    return fingerprint(json.dumps(record, sort_keys=True))


def _must_be_sound(data: dict[str, Any], network: OneHiddenNet) -> None:
    """Refuse a record that contradicts its model or its own verdict."""
    if not np.array_equal(_numbers(data["network"]["weights"]), network.weights):
        raise ValueError("its weights are not those of model.safetensors")
    if len(data["feature_names"]) != network.n_inputs:
        raise ValueError("it does not name one feature an input")
    if data["status"] not in list(Status):
        raise ValueError(f"unknown status {data['status']!r}")
    if not data["checks"] or not all(isinstance(one["passed"], bool) for one in data["checks"]):
        raise ValueError("its checks are missing or have no verdict")
    decisive = [one for one in data["checks"] if one.get("about") != About.NOTE]
    if Status(data["status"]).certified and not all(one["passed"] for one in decisive):
        raise ValueError("its status does not follow from its checks")
    float(data["seconds"] + 0.0)


_NOT_FINITE = {"inf": np.inf, "-inf": -np.inf, "nan": np.nan}  # which JSON has as text


def _numbers(value: Any) -> Any:
    """A number, or an array of the numbers in a list; None stays None."""
    if isinstance(value, list):
        return np.array([_numbers(one) for one in value], dtype=float)
    return value if value is None else float(_NOT_FINITE[value] if isinstance(value, str) else value)


def _errors(record: dict[str, Any]) -> ParameterRecord:
    names = [one.name for one in fields(ParameterRecord)]
    return ParameterRecord(**{name: _numbers(record.get(name)) for name in names})


def _checks(records: list[dict[str, Any]]) -> list[Check]:
    found = []
    for one in records:
        values = {**one, "value": _numbers(one["value"]), "threshold": _numbers(one["threshold"])}
        values["about"] = About(one.get("about", About.NOTE))
        if "asked" in values:  # its name up to format 3
            values["evaluated"] = values.pop("asked")
        found.append(Check(**values))
    return found


def _unit(record: dict[str, Any], network: OneHiddenNet, errors: ParameterRecord) -> UnitVerdict:
    i = int(record["index"])
    return UnitVerdict(
        i, network.weights[i], float(network.bias[i]), _numbers(network.output[i].tolist()),
        (errors.weights[i], float(errors.bias[i]), _numbers(errors.output[i].tolist())),
        _numbers(record["share"]), UnitStatus(record["status"]), str(record["reason"]),
        None if record.get("cause") is None else Cause[record["cause"]], int(record.get("side", 0)),
    )  # fmt: skip


# Kinds under the names that versions up to 0.2 wrote.
_FORMER_KINDS = {"one unit more": "a larger model", "one unit fewer": "a smaller model"}


def _alternative(record: dict[str, Any]) -> Alternative:
    network = None if record["network"] is None else OneHiddenNet(**record["network"])
    # Versions up to 0.3 kept no ``needed``, and only what they did not rule out.
    return Alternative(
        AlternativeKind(_FORMER_KINDS.get(record["kind"], record["kind"])),
        str(record["label"]),
        _numbers(record["behind"]),
        network,
        tuple(record.get("units", ())),
        _numbers(record.get("needed", "inf")),
    )


def _family(record: dict[str, Any] | None) -> Family | None:
    if record is None:
        return None
    alpha = record.get("alpha")
    return families.from_stored(record | ({} if alpha is None else {"alpha": _numbers(alpha)}))


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


# Fields that are not as they stand in JSON.
_READERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("loss", "noise_variance", "group_variance", "left_over", "band_freedom"), _numbers),
    **dict.fromkeys(("r_squared", "linear_r_squared", "curvature", "input_mean", "input_spread"), _numbers),
    **dict.fromkeys(("target_spread", "noise_covariance", "undetected"), _numbers),
    **dict.fromkeys(("feature_names", "classes"), tuple),
    **dict.fromkeys(("checks", "score_checks"), _checks),
    **dict.fromkeys(("queries", "freedom"), int),
    "status": Status,
    "standard_errors": _errors,
    "trace": lambda records: [TraceRecord(**one | {"loss": _numbers(one["loss"])}) for one in records],
    "signal": lambda signal: {int(order): _numbers(z) for order, z in signal.items()},
    "alternatives": lambda records: tuple(map(_alternative, records)),
    "family": _family,
    "error_freedom": lambda record: None if record is None else _errors(record),
}
