"""Recovery: what recover() returns, frozen, with everything a reader may doubt."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from onehidden.certify.compare import Alternative, Kind
from onehidden.certify.errors import ParameterRecord
from onehidden.certify.status import Status
from onehidden.certify.units import UnitStatus, UnitVerdict
from onehidden.checks import About, Check
from onehidden.journal import fingerprint
from onehidden.network import OneHiddenNet
from onehidden.recovery.prediction import Prediction
from onehidden.run import TraceRecord

FORMAT_VERSION = 3  # from 3 on with a digest of all that is said


@dataclass(frozen=True)
class Recovery:
    """A recovered network with its certificate.

    Attributes
    ----------
    network : the units in canonical form.
    status : "exact", "consistent", "approximate", "doubtful" or "not identifiable".
    message : one sentence behind the status.
    converged : whether the status is "exact" or "consistent".
    loss : mean squared residual, in the units of y squared.
    noise_variance : residual sum of squares over n - (free parameters).
    seconds : wall-clock time of the call.
    checks : the certificate, one record a question.
    standard_errors : of every parameter, in canonical form; infinite where the data cannot tell.
    trace : (stage, step, loss relative to var y, seconds) as it went.
    curvature : spectrum of the Gauss–Newton matrix along the free directions, unit diagonal.
    signal : z-value of each score moment that was measured, by order; of several components the largest.
    input_model : what the input law was taken for, and why; "not needed" where no start asked.
    score_checks : Stein's identity for that input model, where it was estimated.
    origin : the start that led here.
    feature_names, options, versions : what is needed to read and repeat the result.
    queries : rows asked of a black box (``recover_oracle``); 0 when the samples were given.
    units : one record a unit: parameters, standard errors, share of var(y), status, reason.
    alternatives : other answers that the data do not tell from this one, with how far they fall behind.
    freedom : free parameters; n_samples less these are the degrees of freedom of the intervals.
    left_over : share of var(y) that the data show to be missed; 0 if none.
    r_squared, linear_r_squared : share of var(y) explained on the rows that were fitted, and by the best
        linear function on the same rows.
    prediction : what predictions are made with, and how they do on rows left out; the network where None.
    input_mean, input_spread, target_spread : means and standard deviations of the inputs, (d,), and of y:
        what a standardised effect is measured in. Empty where they were not kept.
    """

    network: OneHiddenNet
    status: Status
    message: str
    loss: float
    noise_variance: float
    seconds: float
    checks: list[Check]
    standard_errors: ParameterRecord
    trace: list[TraceRecord] = field(repr=False)
    curvature: np.ndarray = field(repr=False)
    signal: dict[int, float]
    origin: str
    n_samples: int
    feature_names: tuple[str, ...] = field(repr=False)
    options: dict[str, Any] = field(repr=False)
    versions: dict[str, str] = field(repr=False)
    input_model: str = "not needed"
    score_checks: list[Check] = field(repr=False, default_factory=list)
    queries: int = 0
    units: tuple[UnitVerdict, ...] = field(repr=False, default=())
    alternatives: tuple[Alternative, ...] = field(repr=False, default=())
    freedom: int = 0
    left_over: float = 0.0
    r_squared: float = float("nan")
    linear_r_squared: float = float("nan")
    prediction: Prediction | None = field(repr=False, default=None)
    input_mean: np.ndarray = field(repr=False, default_factory=lambda: np.zeros(0))
    input_spread: np.ndarray = field(repr=False, default_factory=lambda: np.zeros(0))
    target_spread: float = field(repr=False, default=float("nan"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "status", Status(self.status))

    @property
    def converged(self) -> bool:
        return self.status.certified

    def predict(self, X: npt.ArrayLike) -> np.ndarray:
        """The mean of y at the rows of X: by the network, or by what ``prediction`` says did no worse.

        On rows that were left out of the fit these are no worse than ridge regression's; ``network.predict``
        is the network itself.
        """
        X = np.asarray(X, dtype=float)
        if self.prediction is None or X.ndim != 2 or X.shape[1] != self.network.n_inputs:
            return self.network.predict(X)
        return self.prediction.predict(self.network, X)

    @property
    def held_out_r_squared(self) -> float:
        """Share of var(y) that ``predict`` explains on rows left out of the fit; NaN if not known."""
        return float("nan") if self.prediction is None else self.prediction.r_squared

    @property
    def held_out_linear_r_squared(self) -> float:
        """Share of var(y) that ridge regression explains on rows left out of the fit."""
        return float("nan") if self.prediction is None else self.prediction.linear_r_squared

    def summary(self) -> str:
        """The answer as a table: the verdict, the formula, the fit, and every unit with its errors."""
        from onehidden.report.as_text import summary

        return summary(self)

    def __str__(self) -> str:
        from onehidden.report.as_text import first_lines

        return first_lines(self)

    def _repr_html_(self) -> str:
        """The first screen as a notebook shows it."""
        from onehidden.report.as_notebook import fragment

        return fragment(self)

    def to_frame(self) -> Any:
        """A pandas data frame, one row a number: unit, what it is, estimate, error, standardised effect."""
        from onehidden.report.frame import to_frame

        return to_frame(self)

    def interval(self, level: float = 0.95) -> tuple[ParameterRecord, ParameterRecord]:
        """Lower and upper ends of the confidence interval of every parameter, by quantiles of Student's t."""
        from scipy.special import stdtrit

        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level}")
        reach = float(stdtrit(max(self.n_samples - self.freedom, 1), 0.5 + level / 2))
        net, error = self.network, self.standard_errors
        ends = []
        for sign in (-1, 1):
            ends.append(
                ParameterRecord(
                    net.weights + sign * reach * error.weights,
                    net.output + sign * reach * error.output,
                    net.bias + sign * reach * error.bias,
                    net.intercept + sign * reach * error.intercept,
                )
            )
        return ends[0], ends[1]

    def save(self, directory: str | Path) -> None:
        """Write ``model.safetensors`` and ``recovery.json`` into a folder."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        self.network.save(folder / "model.safetensors")
        held = self.to_dict()
        text = json.dumps({**held, "digest": _digest(held)}, indent=1, allow_nan=False)
        (folder / "recovery.json").write_text(text)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the model, as plain JSON values; numbers that are not finite become text."""
        error = self.standard_errors
        return {
            "format_version": FORMAT_VERSION,
            "status": str(self.status),
            "message": self.message,
            "converged": self.converged,
            "loss": plain(self.loss),
            "noise_variance": plain(self.noise_variance),
            "seconds": self.seconds,
            "origin": self.origin,
            "n_samples": self.n_samples,
            "queries": self.queries,
            "network": {
                "activation": self.network.activation.name,
                "weights": self.network.weights.tolist(),
                "output": self.network.output.tolist(),
                "bias": self.network.bias.tolist(),
                "intercept": plain(self.network.intercept),
            },
            "standard_errors": {name: plain(value) for name, value in asdict(error).items()},
            "checks": _plain_checks(self.checks),
            "score_checks": _plain_checks(self.score_checks),
            "input_model": self.input_model,
            "signal": {str(order): plain(z) for order, z in self.signal.items()},
            "curvature": plain(self.curvature),
            "trace": [{key: plain(v) for key, v in asdict(record).items()} for record in self.trace],
            "freedom": self.freedom,
            "left_over": plain(self.left_over),
            "r_squared": plain(self.r_squared),
            "linear_r_squared": plain(self.linear_r_squared),
            "prediction": None if self.prediction is None else _plain_values(self.prediction.to_dict()),
            "input_mean": plain(self.input_mean),
            "input_spread": plain(self.input_spread),
            "target_spread": plain(self.target_spread),
            "units": [_plain_unit(unit) for unit in self.units],
            "alternatives": [_plain_alternative(one) for one in self.alternatives],
            "feature_names": list(self.feature_names),
            "options": {key: plain(value) for key, value in self.options.items()},
            "versions": self.versions,
        }

    def report(
        self,
        path_html: str | Path,
        X: npt.ArrayLike | None = None,
        y: npt.ArrayLike | None = None,
        truth: OneHiddenNet | None = None,
    ) -> None:
        """Write the report as one HTML page; samples add ridge functions, a true network a comparison."""
        from onehidden.report import render_html

        if Path(path_html).suffix not in (".html", ".htm"):
            raise ValueError(f"the report is an HTML page: name a .html file, got {path_html}")
        render_html(self, path_html, X=X, y=y, truth=truth)


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
            target_spread=_number(data.get("target_spread", "nan")),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is damaged or does not belong to its model: {error}") from None


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
        "bias": net.bias.tolist(), "intercept": plain(net.intercept),
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
