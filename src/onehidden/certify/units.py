"""The verdict on each unit: what the rows see of it, and why it is undetermined if it is."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from onehidden.certify import levels
from onehidden.certify.errors import ParameterRecord
from onehidden.certify.local_fit import LocalFit
from onehidden.fit.samples import Inputs, Numbers, Target, Weight
from onehidden.network import OneHiddenNet


class UnitStatus(enum.StrEnum):
    """What the data say of one unit."""

    DETERMINED = "determined"
    UNDETERMINED = "undetermined"
    DOUBTFUL = "doubtful"


class Cause(enum.Enum):
    """Why a unit is undetermined: in words for a person, of one unit and of several."""

    NOTHING = "the rows do not show that it has an effect", "the rows do not show that they have an effect"
    SIZE = "the rows leave open how large its effect is", "the rows leave open how large their effects are"
    PARALLEL = "it does the same as another", "they do the same as others"
    KINK = "too few rows lie on one side of its bend", "too few rows lie on one side of their bends"
    BLIND = ("some weights change nothing in these rows",) * 2
    APART = "too few rows tell it from another", "too few rows tell them from each other"
    EQUIVALENT = "reversed, it gives the same function", "reversed, they give the same function"
    RIVAL = ("other networks explain the rows equally well",) * 2
    SPARE = "the rows do not show that it is needed", "the rows do not show that they are needed"


@dataclass(frozen=True)
class UnitVerdict:
    """One unit of an answer.

    Attributes
    ----------
    index : int
        Its place in the network, from 0.
    weights : ndarray of shape (d,)
        Input weights.
    bias : float
        Bias.
    output : float or ndarray of shape (q,)
        Output weight, or one per output.
    errors : tuple
        Standard errors of weights, bias and output.
    share : float
        Its share of the variance of y, var(w g) / var(y).
    status : UnitStatus
        The verdict.
    reason : str
        One clause behind the verdict; empty when determined.
    cause : Cause or None
        The kind of reason.
    side : int
        1 where the argument is positive in every row, -1 where it is positive in none, 0 otherwise: a unit
        with a kink is a linear function of such rows.
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
    side: int = 0

    def undetermined(self, cause: Cause, reason: str) -> UnitVerdict:
        """Mark the unit as undetermined; an earlier reason stays."""
        if self.status == UnitStatus.UNDETERMINED:
            return self
        return replace(self, status=UnitStatus.UNDETERMINED, cause=cause, reason=reason)


Undetermined = dict[int, tuple[Cause, str]]  # units by number: the cause, and a clause for a person


@dataclass(frozen=True)
class ActivePatterns:
    """On which rows the units of a network are active, counted.

    Where two units are both active, or one is active exactly where the other is not, rows see only their sum
    or difference.
    """

    beyond: Int[np.ndarray, " k"]  # rows on the lesser side of each unit
    apart: Int[np.ndarray, "k k"]  # rows on which one of two units changes its side alone; diagonal n
    sure: Int[np.ndarray, " k"]  # rows on which each unit is not always, or never, active
    spread: Float[np.ndarray, " k"]  # standard deviation of w_i g_i as a share of std(y), mean over outputs
    side: Int[np.ndarray, " k"]  # 1 where a unit is active in every row, -1 where in none, else 0

    @classmethod
    def of(
        cls, network: OneHiddenNet, both: np.ndarray, below: np.ndarray, total: np.ndarray, square: np.ndarray
    ) -> ActivePatterns:
        """From ``pattern_sums`` of all rows."""
        both, k = np.rint(both).astype(np.int64), len(below)
        count = np.diag(both)
        n = int(count[k])
        differ = count[:, None] + count[None, :] - 2 * both
        fewest = np.minimum(differ, n - differ)
        apart = fewest[:k, :k].copy()
        apart[np.diag_indices(k)] = n
        size = np.mean(network.output.reshape(k, -1) ** 2, axis=1)
        spread = np.sqrt(size * np.maximum(square / n - (total / n) ** 2, 0))
        side = np.where(below == 0, 1, np.where(count[:k] == 0, -1, 0))
        return cls(np.minimum(count[:k], below), apart, fewest[:k, k], spread, side)

    def closest(self) -> tuple[int, tuple[int, int] | None]:
        """Fewest rows that tell two units apart, or one from a unit that is always active (then None)."""
        i, j = np.unravel_index(int(np.argmin(self.apart)), self.apart.shape)
        if len(self.sure) < 2 or self.sure.min() < self.apart[i, j]:
            return int(self.sure.min()), None
        return int(self.apart[i, j]), (int(min(i, j)), int(max(i, j)))


def pattern_sums(
    network: OneHiddenNet, Z: Inputs, y: Target, weight: Weight, row: Numbers
) -> list[np.ndarray]:
    """The sums over rows of ``ActivePatterns.of``, for a network in the coordinates of the rows."""
    t = Z @ network.weights.T + network.bias
    edge = on_kink(t)  # such rows may lie on either side
    active = np.column_stack([t > edge, np.ones(len(t), bool)]).astype(float)
    units = network.activation(t)
    return [active.T @ active, np.sum(t < -edge, axis=0), units.sum(axis=0), np.sum(units**2, axis=0)]


def on_kink(t: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " k"]:
    """The distance, of arguments of the units, below which a row lies on the kink but for rounding."""
    return 1e-9 * np.max(np.abs(t), axis=0, initial=0.0)


def rows_needed(d: int) -> int:
    """Rows that settle which of two units is which: two more than the d + 1 numbers of an affine function.

    With none to spare any two units fit.
    """
    return d + 3


def undetermined_units(
    local: LocalFit, patterns: ActivePatterns, errors: ParameterRecord, least: float = 1e-7
) -> Undetermined:
    """The units that the rows leave undetermined.

    ``least`` is the share of std(y) below which a unit of an exact fit adds nothing.
    """
    network, parallel = local.network, _same_units(local.inner)
    homogeneous, d = network.activation.homogeneity is not None, local.inner.n_inputs
    own = local.problem.form.inputs  # weights of a unit alone
    needed, open_parameters = rows_needed(own), local.open_parameters
    found: Undetermined = {}
    clear = in_errors(network.output, errors.output)
    for i in range(network.n_hidden):
        twins = np.flatnonzero(parallel[i, :i])
        if patterns.spread[i] < least:
            found[i] = Cause.NOTHING, f"unit {i + 1} adds nothing to y"
        elif len(twins):
            found[i] = Cause.PARALLEL, f"units {twins[0] + 1} and {i + 1} are parallel"
        elif homogeneous and patterns.beyond[i] < needed:
            reason = f"rows beyond the kink of unit {i + 1}: {patterns.beyond[i]} of {needed} needed"
            found[i] = Cause.KINK, reason
        elif open_parameters[i * d : (i + 1) * d].any():
            found[i] = Cause.BLIND, f"the weights of unit {i + 1} are not determined"
        elif not local.exact and own and clear[i] < levels.OUTPUT.value:
            # Its share may be large: w is not clear of zero while all other parameters are free. A filter
            # that units share is known from the others.
            reason = f"other units can take over the part of unit {i + 1}"
            alone = f"the output of unit {i + 1} cannot be distinguished from zero"
            found[i] = Cause.SIZE, reason if network.n_hidden > 1 else alone
    fewest, pair = patterns.closest() if homogeneous else (needed, None)
    if fewest < needed and pair is not None and not parallel[pair]:
        reason = f"rows that tell units {pair[0] + 1} and {pair[1] + 1} apart: {fewest} of {needed} needed"
        found = {i: (Cause.APART, reason) for i in pair} | found
    return found


def _same_units(inner: OneHiddenNet) -> Bool[np.ndarray, "k k"]:
    """(k, k) whether two units are one, up to sign and, where g is homogeneous, up to scale.

    Other g tell multiples of a plane apart: exp(-t) and exp(-3 t) are two functions.
    """
    planes = np.column_stack([inner.weights, inner.bias])
    length = np.maximum(np.linalg.norm(planes, axis=1), np.finfo(float).tiny)
    scale = np.outer(length, length)
    if inner.activation.homogeneity is None:
        scale = np.maximum(length[:, None], length) ** 2
    return np.abs(planes @ planes.T) / scale > 1 - np.sqrt(np.finfo(float).eps)


def in_errors(output: Float[np.ndarray, "k ..."], errors: Float[np.ndarray, "k ..."]) -> np.ndarray:
    """(k,) |w| in standard errors; of several outputs the root of their squares less what noise adds."""
    z = (output / np.maximum(errors, np.finfo(float).tiny)).reshape(len(output), -1)
    z = np.clip(z, -1e150, 1e150)  # an error of zero: the square stays finite
    return np.sqrt(np.maximum(np.sum(z**2, axis=1) - (z.shape[1] - 1), 0))


def plural(noun: str) -> str:
    """The plural of a noun."""
    return noun[:-1] + "ies" if noun.endswith("y") else noun + "s"


def named(units: tuple[int, ...]) -> str:
    """Units in words."""
    numbers = [str(i + 1) for i in units]
    return f"unit {numbers[0]}" if len(numbers) == 1 else f"units {', '.join(numbers[:-1])} and {numbers[-1]}"


def why_undetermined(cause: Cause | None, several: bool) -> str:
    """A clause for a person: why a unit, or several, may not be interpreted."""
    return "several networks fit these rows equally well" if cause is None else cause.value[several]
