"""From a certificate to the record that a caller holds, with predictions no worse than ridge regression.

A certified network that is no worse than ridge regression on rows left out predicts as it stands. Otherwise
ridge regression l and the network N are fitted to part of the rows, and predictions are l + share (N - l)
with the share that is best on the rows left out, reduced by what chance may have added to it; it is zero
where those rows do not show that the network adds anything.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from jaxtyping import Float

from onehidden import __version__
from onehidden.certify.certificate import Certificate
from onehidden.certify.evaluate import certificate_work
from onehidden.certify.likelihood import Tangent
from onehidden.certify.units import rows_needed
from onehidden.fit.final import TO_COMPARE, linear_network, optimise
from onehidden.fit.least_squares import InMemoryLeastSquares
from onehidden.fit.parametrisation import roots, weighed
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Rows
from onehidden.network import OneHiddenNet
from onehidden.options import Options
from onehidden.recovery.line import Affine, least_squares, measures, ridge_line
from onehidden.recovery.prediction import Prediction, linearised
from onehidden.recovery.record import Recovery
from onehidden.recovery.search import Found
from onehidden.recovery.target import Target
from onehidden.refused import Refused
from onehidden.run import Run
from onehidden.starts.candidate import descent_work
from onehidden.starts.input_model import InputModel
from onehidden.starts.schedule import proposals

_TRIES = 4  # candidates that a search without some of the rows finishes
# Searches for a network in some of the rows.
Refit = Callable[[Problem, Run], OneHiddenNet]


def recorded(found: Found, problem: Problem, target: Target, options: Options, run: Run) -> Recovery:
    """Return the record of an answer."""
    held = held_against_ridge(found.certificate, problem, options, run)
    rows, plain = problem.rows, options.to_dict()
    made = record(found.certificate, found.origin, rows, problem.input_model, plain, run, held=held)
    return made if target.family is None else replace(made, classes=target.classes)


def held_against_ridge(
    certificate: Certificate, problem: Problem, options: Options, run: Run
) -> tuple[Problem, Prediction | None]:
    """Return the problem and what to predict with; searches in some of the rows finish few candidates.

    Ridge regression is one of normal noise and one output; None for others: the network predicts.
    """
    if problem.family is not None or problem.form.outputs is not None:
        return problem, None

    def refit(part: Problem, run: Run) -> OneHiddenNet:
        quiet = replace(run, listener=False, trace=[])
        begun = islice(proposals(part, options.start, quiet), _TRIES)
        ended = [
            optimise(
                part.search_coordinates.outward(one.network),
                part,
                quiet.at("finish", number),
                tolerance=TO_COMPARE,
            )
            for number, one in enumerate(begun)
        ]
        if not ended:
            raise Refused("no start found anything to begin from in these rows")
        return min(ended, key=lambda one: one.mean_square).network

    return problem, guarded(certificate, problem, refit, run)


def record(
    certificate: Certificate,
    origin: str,
    rows: Rows,
    inputs: InputModel | None,
    options: dict[str, object],
    run: Run,
    queries: int = 0,
    held: tuple[Problem, Prediction | None] | None = None,
) -> Recovery:
    """Return the record of a certificate; ``inputs`` is the input model, where one was asked for.

    ``held`` are rows in memory, all or a sample of them, and what to predict with as it was found on them.
    """
    explained = 1 - certificate.mean_square
    problem, prediction = (None, None) if held is None else held
    measured: dict[str, Any] = {"r_squared": explained}
    measured |= {} if problem is None else measured_on(problem, certificate)
    return Recovery(
        network=certificate.network,
        status=certificate.status,
        message=certificate.message,
        loss=certificate.loss,
        noise_variance=certificate.noise_variance,
        seconds=run.seconds(),
        checks=certificate.checks,
        standard_errors=certificate.standard_errors,
        trace=run.trace,
        curvature=certificate.curvature,
        signal={} if inputs is None else dict(sorted(inputs.signal.items())),
        origin=origin,
        n_samples=rows.n,
        feature_names=rows.names,
        options=options,
        versions=versions(),
        input_model="not needed" if inputs is None else inputs.name,
        score_checks=[] if inputs is None else inputs.checks,
        queries=queries,
        units=certificate.units,
        alternatives=tuple(one for one in certificate.alternatives if one.close and one.network is not None),
        freedom=certificate.n_parameters,
        covariance=certificate.covariance,
        undetected=certificate.undetected,
        error_freedom=certificate.freedom,
        band_freedom=certificate.band_freedom,
        left_over=certificate.missed_share,
        prediction=prediction,
        **measured,
    )


def measured_on(problem: Problem, certificate: Certificate) -> dict[str, Any]:
    """Means and spreads of the rows, and the share of the variance, or of the deviance, that is explained."""
    samples = problem.samples
    found = measures(samples.X, samples.y, samples.row_weight)
    if problem.family is None:
        if problem.form.outputs is not None:
            found["r_squared"] = 1 - certificate.loss / float(np.mean(found["target_spread"] ** 2))
            found["noise_covariance"] = noise_covariance(certificate, problem)
        return found
    family, line = problem.family, linear_network(problem)
    total = float(np.sum(problem.row_losses(linear_network(problem, inputs=False))))
    found["r_squared"] = 1 - certificate.mean_square * problem.n_values / total
    found["linear_r_squared"] = 1 - float(np.sum(problem.row_losses(line))) / total
    return found | {"family": family}


def noise_covariance(certificate: Certificate, problem: Problem) -> Float[np.ndarray, "q q"]:
    """Of the noise of several outputs, in their own units."""
    samples = problem.samples
    residual = weighed(roots(samples.weight, samples.n), certificate.network.predict(samples.X) - samples.y)
    return residual.T @ residual / max(samples.n - certificate.n_parameters / problem.form.q, 1)


def versions() -> dict[str, str]:
    """Return what the answer was computed with."""
    import jax

    return {
        "onehidden": __version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def guarded(
    certificate: Certificate, problem: Problem, refit: Refit, run: Run, most_work: float = 1e9
) -> Prediction:
    """The predictions: the network, ridge regression, or something between them.

    The rows of the problem are in memory. ``refit`` searches for such a network in some of them; not where
    one descent takes more than ``most_work`` operations.
    """
    network, samples = certificate.network, problem.samples
    line, missed = ridge_line(samples.X, samples.y, samples.weight)
    nothing, share = Affine(np.zeros(network.n_inputs), 0.0), samples.share
    variance = float(share @ (samples.y - float(share @ samples.y)) ** 2)
    if variance == 0 or problem.activation.polynomial:
        return Prediction(1.0, line, nothing)

    def explained(residual: Float[np.ndarray, " n"]) -> float:
        return 1 - float(share @ residual**2) / variance

    def of_line(reason: str) -> Prediction:
        message = f"predictions are those of ridge regression: {reason}"
        own = explained(missed)
        return Prediction(0.0, line, nothing, r_squared=own, linear_r_squared=own, message=message)

    def of_network(r_squared: float) -> Prediction:
        return Prediction(1.0, line, nothing, r_squared=r_squared, linear_r_squared=explained(missed))

    if certificate.exact:
        # Rows left out of a fit to rounding are reproduced as well, if the parameters are determined at all.
        return of_network(1 - certificate.mean_square)
    own = problem.with_width(network.n_hidden).with_activation(network.activation)
    if certificate.status.certified:
        outside = leverage_residuals(network, own, run)
        if explained(outside) >= explained(missed):
            return of_network(explained(outside))
    weak = weakly_supported(network, samples.X, samples.weight)
    if len(weak[0]) == network.n_hidden:
        return of_line("only a handful of rows tell the units from a linear function")
    kept = linearised(network, samples.X, *weak)
    added = kept - line(samples.X)
    low, high = float(added.min()), float(added.max())
    # With 50 rows per parameter the search has fitted no noise, and leverages tell as much as a new search.
    again = certificate.n_parameters * 50 > problem.n and descent_work(own) <= most_work and not run.expired()
    outside = refit_residuals(own, refit, run) if again else None
    if outside is None:
        outside = leverage_residuals(network, own, run) + network.predict(samples.X) - kept
    gain = np.clip(missed - outside, low, high)
    used = _share(missed, gain, share)
    if used == 0:
        return of_line("on rows left out of the fit the network predicts no better")
    return Prediction(
        used, line, weak[1], weak[0], low, high, explained(missed - used * gain), explained(missed),
        _words(used, weak[0]),
    )  # fmt: skip


def _share(
    outside: Float[np.ndarray, " n"],
    gain: Float[np.ndarray, " n"],
    share: Float[np.ndarray, " n"],
    chance: float = 4.0,
) -> float:
    """The share of ``gain`` to take off the line's residuals: the best, less what chance may have added.

    A gain of ``chance`` squared standard errors counts as chance. At 4 (two standard errors) the worst of 57
    folds of 19 real tables was .004 of R² below ridge regression; at 1, on 38 of them, .024.
    """
    size = float(share @ gain**2)
    best = float(np.clip(share @ (outside * gain) / size, 0, 1)) if size > 0 else 0.0
    better = outside**2 - (outside - best * gain) ** 2
    mean = float(share @ better)
    variance = float(share**2 @ (better - mean) ** 2)  # of that mean
    if mean <= 0 or variance == 0:
        return 0.0
    return best * max(0.0, 1 - chance * variance / mean**2)


def _words(share: float, linear: tuple[int, ...]) -> str:
    text = f"predictions = ridge + {share:.2f} × (network − ridge); {share:.2f} was chosen on rows left out"
    if linear:
        named = ", ".join(str(i + 1) for i in linear)
        units = f"unit {named} predicts" if len(linear) == 1 else f"units {named} predict"
        text += f"; {units} as a linear function, from which only a handful of rows tell"
    return text


def weakly_supported(
    network: OneHiddenNet, X: Float[np.ndarray, "n d"], weight: Float[np.ndarray, " n"] | None = None
) -> tuple[tuple[int, ...], Affine]:
    """The units that too few rows tell from a linear function, and the sum of the nearest such functions.

    With e what the nearest linear function misses of w g(<a, x> + b), (sum e²)² / sum e⁴ counts the rows that
    it is spread over; they must be more than the parameters of a unit.
    """
    parts = network.activation(X @ network.weights.T + network.bias) * network.output
    slopes, levels, missed = least_squares(X, parts, weight)
    missed = missed if weight is None else missed * np.sqrt(weight)[:, None]
    rows = (missed**2).sum(axis=0) ** 2 / np.maximum((missed**4).sum(axis=0), np.finfo(float).tiny)
    linear = np.flatnonzero(rows < rows_needed(network.n_inputs))
    return tuple(linear.tolist()), Affine(slopes[:, linear].sum(axis=1), float(levels[linear].sum()))


def leverage_residuals(network: OneHiddenNet, problem: Problem, run: Run) -> Float[np.ndarray, " n"]:
    """Residuals r_i / (1 - h_i): y less the prediction of the network re-fitted nearby without that row.

    h is the diagonal of J (J'J)⁺ J', or its mean p / n where that is not within the budget (generalised
    cross-validation, Craven and Wahba 1979).
    """
    samples, fit = problem.samples, problem.least_squares
    assert isinstance(fit, InMemoryLeastSquares)
    left = samples.y - network.predict(samples.X)
    if run.last().within_budget(certificate_work(problem)):
        return left / (1 - Tangent.of_network(fit, problem.theta(network)).leverages())
    return left / max(1 - problem.form.freedom / fit.n, 0.01)


def refit_residuals(
    problem: Problem, refit: Refit, run: Run, folds: int = 5
) -> Float[np.ndarray, " n"] | None:
    """Residuals of a network that was searched for without that row, fold by fold.

    None where the time is over or a search finds nothing to begin from.
    """
    samples, n = problem.samples, problem.n
    groups = np.arange(n) if samples.groups is None else samples.groups
    place = run.rng("rows held out").permutation(groups.max() + 1)  # rows of a group are left out together
    folds = min(folds, len(place))
    order = np.argsort(place[groups], kind="stable")
    fold_of, outside = place[groups][order] % folds, np.zeros(n)
    size = n - int(np.bincount(fold_of).max())  # the same in every fold: shapes are compiled once
    for fold in range(folds):
        held = fold_of == fold
        part = problem.take(order[~held][:size])
        try:
            network = refit(part, run.at("held out", fold))
        except Refused:
            return None
        if run.expired():
            return None
        out = order[held]
        weak = weakly_supported(network, part.samples.X, part.samples.weight)
        outside[out] = samples.y[out] - linearised(network, samples.X[out], *weak)
        run.report(
            "held-out rows", fold + 1, float(np.mean(outside[out] ** 2)) / problem.fit_coordinates.scale**2
        )
    return outside
