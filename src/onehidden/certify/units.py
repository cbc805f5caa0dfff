"""A verdict for every unit: determined, undetermined with its reason, doubtful."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from onehidden.certify.errors import ParameterRecord
from onehidden.certify.patterns import Patterns, rows_needed
from onehidden.network import OneHiddenNet

_PARALLEL = 1e-8  # 1 - |cosine| of (weights, bias) below which two units are one
NOTHING = 1e-7  # share of std(y) below which a unit of an exact fit adds nothing
CLEAR_OF_ZERO = 2.0  # |w| in standard errors: with fewer its own size is not known to a half


class UnitStatus(enum.StrEnum):
    """What the data say of one unit."""

    DETERMINED = "determined"
    UNDETERMINED = "undetermined"
    DOUBTFUL = "doubtful"


class Cause(enum.Enum):
    """Why a unit is undetermined."""

    NOTHING = "it adds nothing"
    PARALLEL = "another unit is parallel to it"
    KINK = "few rows lie beyond its kink"
    BLIND = "some of its weights move no residual"
    APART = "few rows tell it from another unit"
    TIE = "it can be turned around together with others"
    RIVAL = "another network that fits as well has it elsewhere"
    SPARE = "the data do not ask for it"


@dataclass(frozen=True)
class UnitVerdict:
    """One unit of an answer.

    Attributes
    ----------
    index : its place in the network, from 0.
    weights, bias, output : its parameters, of several outputs (q,). errors : their standard errors, in the
        same order.
    share : of the variance of the network's output, in the units' own: var(w g) / var(y).
    status, reason : the verdict, and one clause behind it ("" when determined).
    cause : the kind of reason.
    """

    index: int
    weights: Float[np.ndarray, " d"]
    bias: float
    output: Any
    errors: tuple[Float[np.ndarray, " d"], float, Any]
    share: float
    status: UnitStatus = UnitStatus.DETERMINED
    reason: str = ""
    cause: Cause | None = None

    def undetermined(self, cause: Cause, reason: str) -> UnitVerdict:
        """The same unit, left open for this reason; an earlier reason stays."""
        if self.status == UnitStatus.UNDETERMINED:
            return self
        return replace(self, status=UnitStatus.UNDETERMINED, cause=cause, reason=reason)


def unit_verdicts(
    network: OneHiddenNet,
    inner: OneHiddenNet,
    patterns: Patterns,
    errors: ParameterRecord,
    blind: Bool[np.ndarray, "k d"],
    exact: bool,
    noun: str,
    least: float = NOTHING,
) -> tuple[UnitVerdict, ...]:
    """What the rows leave open of each unit.

    Parameters
    ----------
    network, inner : in x and in whitened coordinates, for a target of unit variance.
    patterns, errors, blind : what the rows see, standard errors, (k, d) weights that move no residual.
    exact : whether the fit is one to rounding.
    noun : what a row is called: sample or query.
    least : share of std(y) below which a unit adds nothing.
    """
    planes = np.column_stack([inner.weights, inner.bias])
    planes = planes / np.maximum(np.linalg.norm(planes, axis=1, keepdims=True), np.finfo(float).tiny)
    cosine = np.abs(planes @ planes.T)
    kinked, needed = network.activation.homogeneity is not None, rows_needed(inner.n_inputs)
    found, clear = [], in_errors(network.output, errors.output)
    for i in range(network.n_hidden):
        twins = [j for j in range(i) if cosine[i, j] > 1 - _PARALLEL]
        lost = not exact and clear[i] < CLEAR_OF_ZERO
        unit = unit_of(network, errors, i, float(patterns.spread[i] ** 2))
        if patterns.spread[i] < least:
            unit = unit.undetermined(Cause.NOTHING, f"unit {i + 1} adds nothing to y")
        elif twins:
            unit = unit.undetermined(Cause.PARALLEL, f"units {twins[0] + 1} and {i + 1} are parallel")
        elif kinked and patterns.beyond[i] < needed:
            crossed = counted(int(patterns.beyond[i]), noun)
            verb = "lies" if patterns.beyond[i] < 2 else "lie"
            unit = unit.undetermined(Cause.KINK, f"{crossed} {verb} beyond the kink of unit {i + 1}")
        elif blind[i].any():
            unit = unit.undetermined(Cause.BLIND, f"the weights of unit {i + 1} are not determined")
        elif lost:
            # Its share may be large all the same: what is not clear of zero is w while all the rest is free.
            reason = f"other units can take over the part of unit {i + 1}"
            alone = f"the output of unit {i + 1} cannot be told from zero"
            unit = unit.undetermined(Cause.NOTHING, reason if network.n_hidden > 1 else alone)
        found.append(unit)
    fewest, pair = patterns.closest() if kinked else (needed, None)
    if fewest < needed and pair is not None and cosine[pair] <= 1 - _PARALLEL:
        tell = f"{counted(fewest, noun)} {'tells' if fewest < 2 else 'tell'}"
        reason = f"{tell} units {pair[0] + 1} and {pair[1] + 1} apart"
        for i in pair:
            found[i] = found[i].undetermined(Cause.APART, reason)
    return tuple(found)


def unit_of(network: OneHiddenNet, errors: ParameterRecord, i: int, share: float) -> UnitVerdict:
    """Unit i of a network with its errors and its share of the variance."""
    several = network.output.ndim == 2
    output, error = (part[i] if several else float(part[i]) for part in (network.output, errors.output))
    errors_ = errors.weights[i], float(errors.bias[i]), error
    return UnitVerdict(i, network.weights[i], float(network.bias[i]), output, errors_, share)


def in_errors(output: Float[np.ndarray, "k ..."], errors: Float[np.ndarray, "k ..."]) -> np.ndarray:
    """(k,) |w| in standard errors; of several outputs the root of their squares less what noise adds."""
    z = (output / np.maximum(errors, np.finfo(float).tiny)).reshape(len(output), -1)
    z = np.clip(z, -1e150, 1e150)  # an error of zero: the square is to stay finite
    return np.sqrt(np.maximum(np.sum(z**2, axis=1) - (z.shape[1] - 1), 0))


def counted(number: int, noun: str) -> str:
    """A few rows in words."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"no {noun}" if number == 0 else f"only {number} {noun if number == 1 else plural}"
