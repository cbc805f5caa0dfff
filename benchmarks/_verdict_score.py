"""The rule by which an answer is right or its certificate false; fixed before any run was looked at.

*Certified* means status "exact" or "consistent"; "approximate" says of itself that it is one.

The truth is a network of the family. Its units and the answer's are paired by ``oh.match`` and held against
each other in canonical form. **Right**: as many units, the same activation, and

- without noise a worst relative error (rows, outputs, biases, intercept) of at most 1e-6;
- with noise every parameter within six of its standard errors, none of which is absurd: for every unit the
  errors of its row and of its output are below half the row and the output. (Chosen over the other reading,
  stored beside it as ``best``: n log(loss) within 1 of a descent that begins at the truth and ends at the
  same units. That one does not hang on the answer's own errors, but knows nothing of how wide they are.)

**False** is a certificate of a network that is not right, with these exceptions: standard errors that are
honest but absurdly wide ("vague") make an answer neither; a network among the alternatives told, or wrong
units that are told to be undetermined, are no false claim; of another activation than the truth's the same,
when the truth's stands among the alternatives. With the width left open, fewer units than the truth are
"faint", neither right nor false, when (d + 2) log n for each missing unit exceeds what the truth gains in
n log(loss): no sample of that size shows them. Asked for a unit fewer or more than there are, every
certificate is false.

A tie: a certificate is false unless the tie is named, by an alternative of the same activation or by a unit
that is not determined.
Anything else (linear, pure noise, sine …): every certificate is false.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

import onehidden as oh
from benchmarks._verdict_cases import Case
from benchmarks._verdict_data import Sample

EXACT = 1e-6  # worst relative error without noise
SIGMAS = 6.0
ABSURD = 0.5  # standard error of a row or an output, relative to it
CLOSE = 0.5  # worst relative error of an alternative that counts as the truth: alternatives carry no errors
TIED = 1.0  # in n log(loss)


@dataclass(frozen=True)
class Answer:
    """What is read from a recovery.

    Attributes
    ----------
    errors : standard errors with the network's shapes (weights, output, bias, intercept).
    lower, upper : ends of the 95 % intervals, likewise.
    alternatives : other networks it tells of.
    units : one status a unit; empty where the library has none.
    failed : names of the checks that did not pass.
    """

    status: str
    network: oh.OneHiddenNet
    errors: object
    lower: object
    upper: object
    alternatives: tuple[object, ...] = ()
    units: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    loss: float = float("nan")
    seconds: float = 0.0

    @property
    def certified(self) -> bool:
        return self.status in ("exact", "consistent")

    @property
    def told(self) -> bool:
        """Whether it says that other networks, or other values of some unit, fit as well."""
        same = [other for other in self.alternatives if _activation(other) == self.network.activation.name]
        return bool(same) or any(unit != "determined" for unit in self.units)


def read(r: object) -> Answer:
    """A recovery of any edition of the library as an Answer: the one place that knows what may be missing."""
    lower, upper = r.interval(0.95)
    others = tuple(getattr(other, "network", other) for other in getattr(r, "alternatives", None) or ())
    units = tuple(str(unit.status) for unit in getattr(r, "units", None) or ())
    failed = tuple(check.name for check in r.checks if not check.passed)
    status = str(getattr(r.status, "value", r.status))
    return Answer(
        status, r.network, r.standard_errors, lower, upper, others, units, failed, r.loss, r.seconds
    )


@dataclass(frozen=True)
class Gaps:
    """Every parameter of an answer beside the truth's, paired: rows first, then outputs, biases, intercept.

    Attributes
    ----------
    gap, error : estimate less truth, and its standard error.
    reach : the error with the second order of a row of fixed length added.
    covered : whether the 95 % interval holds the truth.
    unit : the answer's unit a parameter belongs to; -1 for the intercept.
    vague : whether a unit's errors are absurdly wide.
    """

    gap: Float[np.ndarray, " p"]
    error: Float[np.ndarray, " p"]
    reach: Float[np.ndarray, " p"]
    covered: np.ndarray
    unit: np.ndarray
    vague: bool

    @property
    def far(self) -> np.ndarray:
        """(p,) further than six standard errors; what has no finite error cannot be."""
        # The floor is that of rounding: a parameter that was not free has no error.
        return np.abs(self.gap) > SIGMAS * np.maximum(self.reach, 1e-9)


def gaps(answer: Answer, truth: oh.OneHiddenNet) -> Gaps:
    """The paired parameters of an answer with as many units and the same activation."""
    truth, found = truth.canonical(), answer.network
    g = truth.activation
    m = oh.match(found, truth)
    p, turned = m.permutation, m.signs < 0
    parity = g.reversal.parity if g.sign_free and g.reversal is not None else 1
    shift = float(sum(g.reversal.polynomial[:1])) if g.sign_free and g.reversal is not None else 0.0
    moved = shift * float(np.sum(found.output[p][turned]))
    sign = np.concatenate(
        [
            np.repeat(m.signs, truth.n_inputs),
            np.where(turned, parity, 1),
            m.signs,
            [1],
        ]
    )

    def flat(record: object) -> np.ndarray:
        parts = (record.weights[p].ravel(), record.output[p], record.bias[p], [record.intercept])
        return np.concatenate([np.asarray(part, float) for part in parts])

    target = np.concatenate([truth.weights.ravel(), truth.output, truth.bias, [truth.intercept - moved]])
    ends = np.sort([sign * flat(answer.lower), sign * flat(answer.upper)], axis=0)
    error = flat(answer.errors)
    rows = np.linalg.norm(np.asarray(answer.errors.weights)[p], axis=1)
    # A row of fixed length also moves with the square of its other entries.
    second = np.repeat(rows**2, truth.n_inputs) if g.homogeneity is not None else 0.0
    reach = error.copy()
    reach[: truth.weights.size] += second
    length = np.linalg.norm(found.weights[p], axis=1)
    width = np.maximum(rows / length, np.asarray(answer.errors.output)[p] / np.abs(found.output[p]))
    return Gaps(
        gap=sign * flat(found) - target,
        error=error,
        reach=np.where(np.isfinite(reach), reach, np.inf),
        covered=(ends[0] <= target) & (target <= ends[1]),
        unit=np.concatenate([np.repeat(p, truth.n_inputs), p, p, [-1]]),
        vague=not bool(np.all(width < ABSURD)),
    )


@dataclass(frozen=True)
class Verdict:
    """``false`` says why the certificate is false, and is empty when it is not."""

    right: bool
    false: str = ""
    vague: bool = False
    faint: bool = False


def judge(case: Case, sample: Sample, answer: Answer, best_loss: float = float("nan")) -> Verdict:
    """Hold an answer against the truth; ``best_loss``: mean square of the descent that begins there."""
    if case.is_tie:
        false = f"{answer.status}, and the tie is not named" if answer.certified and not answer.told else ""
        return Verdict(right=not false, false=false)
    if sample.truth is None:
        false = f"{answer.status} for {case.truth}" if answer.certified else ""
        return Verdict(right=not false, false=false)
    verdict = _of_network(case, sample, answer, best_loss)
    return verdict if answer.certified else Verdict(verdict.right, "", verdict.vague, verdict.faint)


def _of_network(case: Case, sample: Sample, answer: Answer, best_loss: float) -> Verdict:
    truth, found = sample.truth, answer.network
    assert truth is not None
    if found.activation.name != truth.activation.name:
        names = [_activation(other) for other in answer.alternatives]
        told = truth.activation.name in names
        return Verdict(False, "" if told else f"{answer.status} with {found.activation.name}")
    if found.n_hidden != truth.n_hidden:
        missing = truth.n_hidden - found.n_hidden
        n, d = sample.X.shape
        gain = n * np.log(answer.loss / best_loss) if sample.noise else np.inf
        if case.ask == "open" and missing > 0 and gain < missing * (d + 2) * np.log(n):
            return Verdict(False, faint=True)
        return Verdict(False, f"{answer.status} with {found.n_hidden} units for {truth.n_hidden}")
    if not sample.noise or answer.status == "exact":
        error = worst_error(found, truth)
        return Verdict(error <= EXACT, "" if error <= EXACT else f"{answer.status}, error {error:.1e}")
    held = gaps(answer, truth)
    if not held.far.any():
        return Verdict(not held.vague, vague=held.vague)
    undetermined = {i for i, unit in enumerate(answer.units) if unit != "determined"}
    told = {int(i) for i in held.unit[held.far]} <= undetermined
    if told or any(_is_truth(other, truth) for other in answer.alternatives):
        return Verdict(False)
    sigmas = float(np.max(np.abs(held.gap) / np.maximum(held.reach, 1e-9)))
    return Verdict(False, f"{answer.status}, {sigmas:.1f} standard errors off")


def worst_error(found: oh.OneHiddenNet, truth: oh.OneHiddenNet) -> float:
    """The worst relative error of rows, outputs, biases and intercept after matching."""
    m = oh.match(found, truth)
    return max(m.max_error, m.output_error, m.bias_error, m.intercept_error)


def _activation(other: object) -> str:
    return other.activation.name if isinstance(other, oh.OneHiddenNet) else ""


def _is_truth(other: object, truth: oh.OneHiddenNet) -> bool:
    if not isinstance(other, oh.OneHiddenNet) or other.n_hidden != truth.n_hidden:
        return False
    return other.activation.name == truth.activation.name and worst_error(other, truth) < CLOSE


def descent_from(truth: oh.OneHiddenNet, X: np.ndarray, y: np.ndarray) -> tuple[float, oh.OneHiddenNet]:
    """Mean square and network where least squares ends that begins at the truth (by MINPACK)."""
    from scipy.optimize import least_squares

    g, (k, d) = truth.activation, truth.weights.shape
    Z = np.column_stack([X, np.ones(len(X))])

    def parts(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return theta[: k * (d + 1)].reshape(k, d + 1), theta[k * (d + 1) : -1]

    def residual(theta: np.ndarray) -> np.ndarray:
        rows, w = parts(theta)
        return g(Z @ rows.T) @ w + theta[-1] - y

    def jacobian(theta: np.ndarray) -> np.ndarray:
        rows, w = parts(theta)
        t = Z @ rows.T
        slope = (g.derivative(t) * w)[:, :, None] * Z[:, None, :]
        return np.column_stack([slope.reshape(len(y), -1), g(t), np.ones(len(y))])

    begin = np.column_stack([truth.weights, truth.bias])
    theta = np.concatenate([begin.ravel(), truth.output, [truth.intercept]])
    end = least_squares(residual, theta, jacobian, method="lm", max_nfev=60).x
    rows, w = parts(end)
    loss = float(np.mean(residual(end) ** 2))
    return loss, oh.OneHiddenNet(rows[:, :d], w, rows[:, d], end[-1], g)
