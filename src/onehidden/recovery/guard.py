"""Predictions that are no worse than ridge regression's on rows that were not fitted.

A network that is certified, and no worse than ridge regression on rows left out, predicts as it stands. Of
any other so much is used as rows left out speak for: ridge regression l and the network N are fitted to the
rest of the rows, and predictions are l + share (N - l) with the share that is best on the rows left out, made
smaller by what chance may have added to it; where they do not speak for the network, the share is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from onehidden.certify.certificate import Certificate
from onehidden.certify.patterns import rows_needed
from onehidden.certify.row_losses import tangent
from onehidden.certify.unexamined import certificate_work
from onehidden.fit.in_memory import NetworkFit
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
from onehidden.recovery.line import Affine, ridge_line
from onehidden.recovery.prediction import Prediction, steady
from onehidden.refused import Refused
from onehidden.run import Run
from onehidden.starts.start import descent_work

FOLDS = 5
# Gain on rows left out, in squared standard errors, that chance is given: at two standard errors nothing of
# the network is used. The worst of 57 folds of 19 real tables was then .004 of R² below ridge regression; at
# one standard error, on 38 of them, .024.
_CHANCE = 4.0
# Rows a parameter from which the search itself has fitted no noise: re-fitting near the answer tells as much
# as a search anew.
_AMPLE = 50
_LEAST = 0.01  # share of a row's residual that its own leverage leaves, at least
_WORK = 1e9  # operations of a descent (a tenth of a second) beyond which no search is made anew

# A search anew: rows to fit -> the network found.
Refit = Callable[[Problem, Run], OneHiddenNet]


@dataclass(frozen=True)
class Steady:
    """A network whose barely supported units were replaced by linear functions."""

    network: OneHiddenNet
    linear: tuple[int, ...]
    instead: Affine

    def predict(self, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        return steady(self.network, X, self.linear) + self.instead(X)


def guarded(certificate: Certificate, problem: Problem, refit: Refit, run: Run) -> Prediction:
    """What to predict with: the network, ridge regression, or something between them.

    Parameters
    ----------
    certificate : of the network found.
    problem : its rows, in memory.
    refit : searches for such a network in some of the rows.
    """
    network, samples = certificate.network, problem.samples
    line, missed = ridge_line(samples.X, samples.y, samples.weight)
    nothing = Affine(np.zeros(network.n_inputs), 0.0)
    share = samples.share
    variance = float(share @ (samples.y - float(share @ samples.y)) ** 2)
    if variance == 0 or problem.activation.polynomial:
        return Prediction(1.0, line, nothing)
    explained = 1 - float(share @ missed**2) / variance
    if certificate.exact:
        # Rows left out of a fit to rounding are reproduced as well, if the parameters are determined at all.
        reproduced = 1 - certificate.mean_square
        return Prediction(1.0, line, nothing, r_squared=reproduced, linear_r_squared=explained)
    own = problem.with_width(network.n_hidden).with_activation(network.activation)
    if certificate.status.certified:
        outside = leverage_residuals(network, own, run)
        if float(share @ outside**2) <= float(share @ missed**2):
            found = 1 - float(share @ outside**2) / variance
            return Prediction(1.0, line, nothing, r_squared=found, linear_r_squared=explained)
    kept = without_anecdotes(network, samples.X, samples.weight)
    if len(kept.linear) == network.n_hidden:
        few = "only a handful of rows tell the units from a linear function"
        return _line_alone(line, nothing, explained, few)
    added = kept.predict(samples.X) - line(samples.X)
    low, high = float(added.min()), float(added.max())
    again = certificate.freedom * _AMPLE > problem.n and descent_work(own) <= _WORK and not run.expired()
    outside = refit_residuals(own, refit, run) if again else None
    if outside is None:
        # Without a search anew, near the answer only; of units taken for linear ones what they predict.
        outside = leverage_residuals(network, own, run) + network.predict(samples.X) - kept.predict(samples.X)
    gain = np.clip(missed - outside, low, high)
    used = _share(missed, gain, share)
    if used == 0:
        return _line_alone(line, nothing, explained, "rows left out of the fit do not speak for the network")
    left = missed - used * gain
    return Prediction(
        used, line, kept.instead, kept.linear, low, high, 1 - float(share @ left**2) / variance, explained,
        _words(used, kept.linear),
    )  # fmt: skip


def _share(
    outside: Float[np.ndarray, " n"], gain: Float[np.ndarray, " n"], share: Float[np.ndarray, " n"]
) -> float:
    """How much of ``gain`` to take off the line's residuals: the best, less what chance may add."""
    size = float(share @ gain**2)
    best = float(np.clip(share @ (outside * gain) / size, 0, 1)) if size > 0 else 0.0
    better = outside**2 - (outside - best * gain) ** 2
    mean = float(share @ better)
    variance = float(share**2 @ (better - mean) ** 2)  # of that mean
    if mean <= 0 or variance == 0:
        return 0.0
    return best * max(0.0, 1 - _CHANCE * variance / mean**2)


def _line_alone(line: Affine, nothing: Affine, explained: float, reason: str) -> Prediction:
    return Prediction(
        0.0, line, nothing, r_squared=explained, linear_r_squared=explained,
        message=f"predictions are those of ridge regression: {reason}",
    )  # fmt: skip


def _words(share: float, linear: tuple[int, ...]) -> str:
    text = f"predictions = ridge + {share:.2f} × (network − ridge); {share:.2f} was chosen on rows left out"
    if linear:
        named = ", ".join(str(i + 1) for i in linear)
        units = f"unit {named} predicts" if len(linear) == 1 else f"units {named} predict"
        text += f"; {units} as a linear function, from which only a handful of rows tell"
    return text


def without_anecdotes(
    network: OneHiddenNet, X: Float[np.ndarray, "n d"], weight: Float[np.ndarray, " n"] | None = None
) -> Steady:
    """The network, with the linear function nearest to it for each unit that a handful of rows bend.

    With e what the nearest linear function misses of w g(<a, x> + b), (sum e²)² / sum e⁴ counts the rows that
    it is spread over; they must be more than the parameters of a unit.
    """
    v = np.ones(len(X)) if weight is None else weight
    root = np.sqrt(v)[:, None]
    parts = network.activation(X @ network.weights.T + network.bias) * network.output
    centre, spread = X.mean(axis=0), np.maximum(X.std(axis=0), np.finfo(float).tiny)
    design = np.column_stack([np.ones(len(X)), (X - centre) / spread])
    fitted = np.linalg.lstsq(design * root, parts * root, rcond=None)[0]
    missed = (parts - design @ fitted) * root
    rows = (missed**2).sum(axis=0) ** 2 / np.maximum((missed**4).sum(axis=0), np.finfo(float).tiny)
    linear = np.flatnonzero(rows < rows_needed(network.n_inputs))
    slope = fitted[1:, linear].sum(axis=1) / spread
    level = float(fitted[0, linear].sum() - slope @ centre)
    return Steady(network, tuple(linear.tolist()), Affine(slope, level))


def leverage_residuals(network: OneHiddenNet, problem: Problem, run: Run) -> Float[np.ndarray, " n"]:
    """y less what the network predicts when re-fitted, near where it is, without that row: r_i / (1 - h_i).

    h is the diagonal of J (J'J)⁺ J'; its mean p / n where the time left does not afford it (generalised
    cross-validation, Craven and Wahba 1979).
    """
    samples, fit = problem.samples, problem.sums
    assert isinstance(fit, NetworkFit)
    left = samples.y - network.predict(samples.X)
    if run.last().affords(certificate_work(problem)):
        return left / (1 - tangent(fit, problem.theta(network)).leverages())
    return left / max(1 - problem.form.freedom / fit.n, _LEAST)


def refit_residuals(problem: Problem, refit: Refit, run: Run) -> Float[np.ndarray, " n"] | None:
    """y less what a network predicts that was searched for without that row, a fifth of the rows at a time.

    None where the time is over or a search finds nothing to begin from.
    """
    samples, n = problem.samples, problem.n
    order, outside = run.rng("rows held out").permutation(n), np.zeros(n)
    size = n - -(-n // FOLDS)  # of every fit the same: shapes are compiled once
    for fold in range(FOLDS):
        held = np.arange(n) % FOLDS == fold
        rest = order[~held][:size]
        part = problem.take(rest)
        try:
            network = refit(part, run.at("held out", fold))
        except Refused:
            return None
        if run.expired():
            return None
        kept = without_anecdotes(network, part.samples.X, part.samples.weight)
        out = order[held]
        outside[out] = samples.y[out] - kept.predict(samples.X[out])
        run.report("held-out rows", fold + 1, float(np.mean(outside[out] ** 2)) / problem.end.scale**2)
    return outside
