"""From a certificate to the record that a caller holds."""

from __future__ import annotations

import platform
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from jaxtyping import Float

from onehidden import __version__
from onehidden.certify.certificate import Certificate
from onehidden.fit.final import TO_COMPARE, linear_network, optimise
from onehidden.fit.parametrisation import roots, weighed
from onehidden.fit.problem import Problem
from onehidden.fit.samples import Rows
from onehidden.network import OneHiddenNet
from onehidden.options import Options
from onehidden.recovery.guard import guarded
from onehidden.recovery.line import measures
from onehidden.recovery.prediction import Prediction
from onehidden.recovery.record import Recovery
from onehidden.recovery.search import Found
from onehidden.recovery.target import Target
from onehidden.refused import Refused
from onehidden.run import Run
from onehidden.starts.input_model import InputModel
from onehidden.starts.schedule import proposals

_TRIES = 4  # candidates that a search without some of the rows finishes


def recorded(found: Found, problem: Problem, target: Target, options: Options, run: Run) -> Recovery:
    """Return the record of an answer."""
    held = held_against_ridge(found.certificate, problem, options, run)
    rows, plain = problem.rows, options.to_dict()
    made = record(found.certificate, found.origin, rows, problem.input_model, plain, run, held=held)
    return made if target.family is None else replace(made, classes=target.classes)


def held_against_ridge(
    certificate: Certificate, problem: Problem, options: Options, run: Run
) -> tuple[Problem, Prediction | None]:
    """Return the problem and what to predict with; searches in some of the rows finish few candidates."""

    def refit(part: Problem, run: Run) -> OneHiddenNet:
        quiet = replace(run, listener=False, trace=[])
        near = part if part.family is None else part.at(linear_network(part))
        begun = islice(proposals(near, options.start, quiet), _TRIES)
        ended = [
            optimise(
                near.search_coordinates.outward(one.network),
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
