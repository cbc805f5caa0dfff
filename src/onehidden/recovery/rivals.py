"""Would a near relative of the activation explain the data better? Asked of a consistent answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onehidden import activations
from onehidden.checks import Check, at_most
from onehidden.network import OneHiddenNet
from onehidden.objectives.residuals import Form
from onehidden.starts.candidate import Task, complete, refine

# Activations that noise can hide behind one another; the first fits the data of the others best.
NEAR = {
    "relu": ("leaky_relu", "softplus", "gelu"),
    "leaky_relu": ("relu", "softplus", "gelu"),
    "softplus": ("gelu", "relu"),
    "gelu": ("softplus", "relu", "squared_relu"),
    "tanh": ("erf",),
    "sigmoid": ("erf",),
    "erf": ("tanh",),
    "squared_relu": ("cubed_relu", "gelu", "softplus"),
    "cubed_relu": ("squared_relu",),
}
TIE = 6.0  # difference of information criteria, as for widths


def rival_check(task: Task, net: OneHiddenNet) -> tuple[Check | None, list[str]]:
    """The best gain among near relatives, each refined from the units found; and those that tie.

    In the plain form: the orientation-free one cannot tell activations that differ by a linear term.
    """
    names = NEAR.get(task.activation.name, ())
    if not names:
        return None, []
    n = len(task.y)

    def criterion(name: str) -> float:
        rival = replace(task, activation=activations.get(name))
        form = Form(rival.activation, task.d, task.k, task.bias)
        there = refine(rival, form, complete(rival, form, net.weights, net.bias), f"rival {name}")
        return n * float(np.log(there.loss)) + form.freedom * float(np.log(n))

    own = criterion(task.activation.name)
    gains = {name: own - criterion(name) for name in names}
    best = max(gains, key=lambda name: gains[name])
    check = at_most(
        "rival activation",
        gains[best],
        TIE,
        f"gain of {best} in place of {task.activation.name}, by the information criterion; above the bound "
        f"the data speak for {best}",
    )
    return check, [name for name in names if abs(gains[name]) <= TIE]
