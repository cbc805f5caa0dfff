"""From a certificate to the record that a caller holds."""

from __future__ import annotations

import platform

import numpy as np

from onehidden import __version__
from onehidden.certify.certificate import Certificate
from onehidden.fit.input_model import InputModel
from onehidden.fit.problem import Problem
from onehidden.fit.rows import Rows
from onehidden.recovery.options import Options
from onehidden.recovery.record import Recovery
from onehidden.recovery.search import Found
from onehidden.run import Run


def recorded(found: Found, problem: Problem, options: Options, run: Run) -> Recovery:
    """The record of an answer."""
    inputs = problem.inputs
    return record(found.certificate, found.origin, problem.rows, inputs, options.plain(), run)


def record(
    certificate: Certificate,
    origin: str,
    rows: Rows,
    inputs: InputModel | None,
    options: dict[str, object],
    run: Run,
    queries: int = 0,
) -> Recovery:
    """The record of a certificate; ``inputs`` is the input model, where one was asked for."""
    explained = 1 - certificate.mean_square
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
        freedom=certificate.freedom,
        left_over=certificate.left_over,
        r_squared=explained,
    )


def versions() -> dict[str, str]:
    """What the answer was computed with."""
    import jax

    return {
        "onehidden": __version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
