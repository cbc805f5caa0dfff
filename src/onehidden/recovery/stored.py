"""A recovery in a folder: the model, everything else as JSON with a digest, the covariance beside it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from onehidden import families
from onehidden.certify.compare import Alternative, Kind
from onehidden.certify.errors import ParameterRecord
from onehidden.certify.status import Status
from onehidden.certify.units import UnitStatus, UnitVerdict
from onehidden.checks import About, Check
from onehidden.families import Family, NegativeBinomial
from onehidden.journal import fingerprint
from onehidden.network import OneHiddenNet
from onehidden.recovery.prediction import Prediction
from onehidden.recovery.record import FORMAT_VERSION, Recovery
from onehidden.run import TraceRecord

_COVARIANCE = "covariance.safetensors"


def save_recovery(record: Recovery, directory: str | Path) -> None:
    """Write ``model.safetensors``, ``recovery.json`` and, where there is one, the covariance."""
    from safetensors.numpy import save_file

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    record.network.save(folder / "model.safetensors")
    if record.covariance is not None:
        save_file({"covariance": np.ascontiguousarray(record.covariance)}, str(folder / _COVARIANCE))
    held = to_dict(record)
    text = json.dumps({**held, "digest": _digest(held)}, indent=1, allow_nan=False)
    (folder / "recovery.json").write_text(text)


def to_dict(record: Recovery) -> dict[str, Any]:
    """Everything but the model, as plain JSON values; numbers that are not finite become text."""
    error = record.standard_errors
    return {
        "format_version": FORMAT_VERSION,
        "status": str(record.status),
        "message": record.message,
        "converged": record.converged,
        "loss": plain(record.loss),
        "noise_variance": plain(record.noise_variance),
        "seconds": record.seconds,
        "origin": record.origin,
        "n_samples": record.n_samples,
        "queries": record.queries,
        "network": {
            "activation": record.network.activation.name,
            "weights": record.network.weights.tolist(),
            "output": record.network.output.tolist(),
            "bias": record.network.bias.tolist(),
            "intercept": plain(record.network.intercept),
            "linear": record.network.linear.tolist(),
        },
        "standard_errors": {name: plain(value) for name, value in asdict(error).items()},
        "checks": _plain_checks(record.checks),
        "score_checks": _plain_checks(record.score_checks),
        "input_model": record.input_model,
        "signal": {str(order): plain(z) for order, z in record.signal.items()},
        "curvature": plain(record.curvature),
        "trace": [{key: plain(v) for key, v in asdict(step).items()} for step in record.trace],
        "freedom": record.freedom,
        "left_over": plain(record.left_over),
        "r_squared": plain(record.r_squared),
        "linear_r_squared": plain(record.linear_r_squared),
        "prediction": None if record.prediction is None else _plain_values(record.prediction.to_dict()),
        "input_mean": plain(record.input_mean),
        "input_spread": plain(record.input_spread),
        "target_spread": plain(record.target_spread),
        "units": [_plain_unit(unit) for unit in record.units],
        "alternatives": [_plain_alternative(one) for one in record.alternatives],
        "feature_names": list(record.feature_names),
        "options": {key: plain(value) for key, value in record.options.items()},
        "versions": record.versions,
        "family": _plain_family(record.family),
        "classes": [plain(np.asarray(label)[()]) for label in record.classes],
        "noise_covariance": plain(record.noise_covariance),
        "covariance": None if record.covariance is None else fingerprint(record.covariance),
    }


def load_recovery(directory: str | Path) -> Recovery:
    """Read a folder written by ``Recovery.save``."""
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
    told = data.pop("digest", None)
    if version >= 3 and told != _digest(data):
        raise ValueError(f"{path} is damaged: it does not say what was saved")
    network = OneHiddenNet.load(folder / "model.safetensors")
    try:
        _must_be_sound(data, network)
        error = data["standard_errors"]
        return Recovery(
            network=network,
            status=Status(data["status"]),
            message=data["message"],
            loss=_number(data["loss"]),
            noise_variance=_number(data["noise_variance"]),
            seconds=data["seconds"],
            checks=_checks(data["checks"]),
            score_checks=_checks(data.get("score_checks", [])),
            input_model=data.get("input_model", "not needed"),
            standard_errors=ParameterRecord(
                _array(error["weights"]),
                _array(error["output"]),
                _array(error["bias"]),
                _one_or_several(error["intercept"]),
                None if error.get("linear") is None else _array(error["linear"]),
            ),
            trace=[TraceRecord(**{key: _restored(v) for key, v in r.items()}) for r in data["trace"]],
            curvature=_array(data["curvature"]),
            signal={int(order): _number(z) for order, z in data["signal"].items()},
            origin=data["origin"],
            n_samples=data["n_samples"],
            feature_names=tuple(data["feature_names"]),
            options=data["options"],
            versions=data["versions"],
            queries=int(data.get("queries", 0)),
            units=tuple(_unit(record, network, error) for record in data.get("units", [])),
            alternatives=tuple(_alternative(one, network) for one in data.get("alternatives", [])),
            freedom=int(data.get("freedom", 0)),
            left_over=_number(data.get("left_over", 0.0)),
            r_squared=_number(data.get("r_squared", "nan")),
            linear_r_squared=_number(data.get("linear_r_squared", "nan")),
            prediction=_prediction(data.get("prediction"), network),
            input_mean=_array(data.get("input_mean", [])),
            input_spread=_array(data.get("input_spread", [])),
            target_spread=_one_or_several(data.get("target_spread", "nan")),
            family=_family(data.get("family")),
            classes=tuple(data.get("classes", [])),
            noise_covariance=_array_or_none(data.get("noise_covariance")),
            covariance=_covariance(folder / _COVARIANCE, data.get("covariance")),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is damaged or does not belong to its model: {error}") from None


def _plain_family(family: Family | None) -> dict[str, Any] | None:
    if family is None:
        return None
    return {"name": family.name, **{name: plain(value) for name, value in vars(family).items()}}


def _family(record: dict[str, Any] | None) -> Family | None:
    if record is None:
        return None
    alpha = record.get("alpha")
    found = families.get(
        record["name"], record["link"], classes=record.get("classes"),
        alpha=None if alpha is None else _number(alpha),
    )  # fmt: skip
    return replace(found, given=record["given"]) if isinstance(found, NegativeBinomial) else found


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


def _array_or_none(values: npt.ArrayLike | None) -> np.ndarray | None:
    return None if values is None else _array(values)


def _digest(record: dict[str, Any]) -> str:
    """A hash of plain JSON values, however they are spaced and ordered in the file."""
    return fingerprint(json.dumps(record, sort_keys=True))


def _must_be_sound(data: dict[str, Any], network: OneHiddenNet) -> None:
    """What a run says of itself must fit its model and its own verdict."""
    if not np.array_equal(_array(data["network"]["weights"]), network.weights):
        raise ValueError("its weights are not those of model.safetensors")
    if len(data["feature_names"]) != network.n_inputs:
        raise ValueError("it does not name one feature an input")
    if data["status"] not in list(Status):
        raise ValueError(f"unknown status {data['status']!r}")
    if not data["checks"] or not all(isinstance(c["passed"], bool) for c in data["checks"]):
        raise ValueError("its checks are missing or have no verdict")
    decisive = [c for c in data["checks"] if c.get("about") != About.NOTE]
    if Status(data["status"]).certified and not all(c["passed"] for c in decisive):
        raise ValueError("its status does not follow from its checks")
    for check in data["checks"]:
        _number(check["value"])
    float(data["seconds"] + 0.0)


_NAMES = {"inf": np.inf, "-inf": -np.inf, "nan": np.nan}


def plain(value: object) -> object:
    """A value as JSON can hold it: arrays as lists, numbers that are not finite as text."""
    if isinstance(value, np.ndarray):
        return [plain(v) for v in value.tolist()]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value


def _plain_values(record: dict[str, Any]) -> dict[str, Any]:
    return {key: plain(value) for key, value in record.items()}


def _prediction(record: dict[str, Any] | None, network: OneHiddenNet) -> Prediction | None:
    if record is None:
        return None
    return Prediction.from_dict({key: _restored(value) for key, value in record.items()}, network)


def _plain_checks(checks: list[Check]) -> list[dict[str, Any]]:
    return [{key: plain(v) for key, v in check.to_dict().items()} for check in checks]


def _checks(records: list[dict[str, Any]]) -> list[Check]:
    found = [{key: _restored(v) for key, v in record.items()} for record in records]
    return [Check(**{**one, "about": About(one.get("about", About.NOTE))}) for one in found]


def _plain_unit(unit: UnitVerdict) -> dict[str, object]:
    """A unit's verdict; its parameters and errors stand with the network's."""
    return {
        "share": plain(unit.share),
        "status": str(unit.status),
        "reason": unit.reason,
        "index": unit.index,
    }


def _unit(record: dict[str, Any], network: OneHiddenNet, error: dict[str, Any]) -> UnitVerdict:
    i = int(record["index"])
    errors = _array(error["weights"])[i], _number(error["bias"][i]), _one_or_several(error["output"][i])
    return UnitVerdict(
        i, network.weights[i], float(network.bias[i]), _one_or_several(network.output[i]), errors,
        _number(record["share"]), UnitStatus(record["status"]), str(record["reason"]),
    )  # fmt: skip


def _plain_alternative(one: Alternative) -> dict[str, object]:
    net = one.network
    parts = None if net is None else {
        "activation": net.activation.name, "weights": net.weights.tolist(), "output": net.output.tolist(),
        "bias": net.bias.tolist(), "intercept": plain(net.intercept), "linear": net.linear.tolist(),
    }  # fmt: skip
    numbers = {"behind": plain(one.behind), "deviations": plain(one.deviations)}
    return {"kind": str(one.kind), "label": one.label, **numbers, "network": parts}


def _alternative(record: dict[str, Any], network: OneHiddenNet) -> Alternative:
    parts = record["network"]
    net = None if parts is None else OneHiddenNet(**parts)
    if net is not None and net.n_inputs != network.n_inputs:
        raise ValueError("an alternative has other inputs than the network")
    behind, deviations = _number(record["behind"]), _number(record.get("deviations", "nan"))
    return Alternative(Kind(record["kind"]), str(record["label"]), behind, net, deviations=deviations)


def _number(value: float | str) -> float:
    return _NAMES[value] if isinstance(value, str) else float(value)


def _one_or_several(value: npt.ArrayLike) -> Any:
    """A number, or of several outputs an array of them."""
    several = isinstance(value, list) or np.ndim(value) > 0
    return _array(value) if several else _number(value)  # pyright: ignore[reportArgumentType]


def _restored(value: object) -> Any:
    return _NAMES.get(value, value) if isinstance(value, str) else value


def _array(values: npt.ArrayLike) -> np.ndarray:
    if isinstance(values, list):
        return np.array([_array(v) if isinstance(v, list) else _number(v) for v in values], dtype=float)
    return np.asarray(values, float)
