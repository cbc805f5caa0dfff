"""A target that is constant: nothing to recover, said as a result."""

from __future__ import annotations

import numpy as np

from onehidden.checks import at_least
from onehidden.network import OneHiddenNet
from onehidden.objectives.residuals import Form
from onehidden.recovery.certificate import Certificate
from onehidden.recovery.coordinates import Coordinates
from onehidden.recovery.input_model import InputModel
from onehidden.recovery.race import Scouting
from onehidden.recovery.record import ParameterRecord
from onehidden.recovery.samples import Samples
from onehidden.recovery.search import Effort, Found


def constant_answer(samples: Samples, form: Form, around: Coordinates, effort: Effort) -> Found:
    """The constant as a network whose units add nothing, marked not identifiable."""
    d, level = samples.X.shape[1], float(samples.y[0])
    weights = np.tile(np.eye(d)[0], (form.k, 1))
    network = OneHiddenNet(weights, np.zeros(form.k), np.zeros(form.k), level, form.activation)
    check = at_least("varying target", 0.0, 1e-14, "relative spread of y; a constant target shows no unit")
    undetermined = ParameterRecord(
        np.full((form.k, d), np.inf), np.full(form.k, np.inf), np.full(form.k, np.inf), np.inf
    )
    certificate = Certificate(
        network,
        [check],
        "not identifiable",
        f"y is constant ({level:g}): there is nothing to recover from it",
        loss=0.0,
        noise_variance=0.0,
        standard_errors=undetermined,
        curvature=np.zeros(1),
        rms=0.0,
        freedom=form.freedom,
    )
    model = InputModel(around.inputs(samples.X), effort.score, effort.seed)
    return Found(certificate, "none", Scouting(model))
