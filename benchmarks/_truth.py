"""A recovery held against the truth: errors, and whether its certificate is false."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import onehidden as oh

EXACT = 1e-8  # worst relative error that counts as exact recovery
FALSE_EXACT = 1e-6  # an "exact" network worse than this is a false certificate
FALSE_SIGMAS = 6.0  # a "consistent" one further than this many standard errors from the truth, too


def worst_error(found: oh.OneHiddenNet, truth: oh.OneHiddenNet) -> float:
    """The worst relative error of rows, outputs, biases and intercept after matching."""
    if found.activation.name != truth.activation.name:
        return float("inf")
    m = oh.match(found, truth)
    return max(m.max_error, m.output_error, m.bias_error, m.intercept_error)


@dataclass(frozen=True)
class Ask:
    """What is asked of a problem, right or deliberately wrong."""

    hidden: int | None
    activation: str
    bias: bool


def ask_of(problem: Any, how: str) -> Ask:
    """The ask of that kind: right, fewer, more, no-bias, or the name of an activation.

    "width" and "activation" leave those to be chosen from the data.
    """
    right = Ask(problem.n_hidden, problem.activation, problem.bias)
    if how == "right":
        return right
    if how in ("fewer", "more"):
        return replace(right, hidden=problem.n_hidden + (1 if how == "more" else -1))
    if how == "width":
        return replace(right, hidden=None)
    if how == "activation":
        return replace(right, activation="auto")
    if how == "no-bias":
        return replace(right, bias=False)
    return replace(right, activation=how)


def trial(name: str, seed: int, noise: float, how: str, n: int, max_seconds: float) -> dict[str, Any]:
    """One recovery of a problem of the catalogue and what the truth says of it; n = 0: the problem's own."""
    problem = replace(oh.problems.get(name), noise=noise)
    X, y, truth = problem.sample(n or None, seed)
    ask = ask_of(problem, how)
    try:
        r = oh.recover(
            X, y, ask.hidden, activation=ask.activation, bias=ask.bias, seed=seed, max_seconds=max_seconds
        )
    except ValueError as refusal:
        return {"status": "refused", "message": str(refusal), "false": "", "right": False, "error": None,
                "width": None, "seconds": 0.0, "origin": "", "device": device()}  # fmt: skip
    row = judged(r, truth, noise) | {"device": device()}
    if row["false"] and ask.activation not in (truth.activation.name, "auto"):
        row["evidence"] = evidence(X, y, r.loss, truth, ask.bias)
        row["named"] = f" {truth.activation.name}" in r.message
        row["false"] += f" (its own activation is better by {row['evidence']:.1f} in n log(loss))"
    return row


def evidence(X: np.ndarray, y: np.ndarray, loss: float, truth: oh.OneHiddenNet, bias: bool) -> float:
    """n log(loss / loss of the fit with the true activation): below about 6 the samples cannot tell."""
    from onehidden.fit.least_squares import InMemoryLeastSquares
    from onehidden.fit.parametrisation import Parametrisation
    from onehidden.solvers import LevenbergMarquardt

    form = Parametrisation(truth.activation, truth.n_inputs, truth.n_hidden, bias)
    theta = form.pack(truth.weights, truth.output, truth.bias, None, truth.intercept)
    best = LevenbergMarquardt(max_steps=60).solve(InMemoryLeastSquares(form, X, y), theta).loss / len(y)
    return float(len(y) * np.log(loss / best))


def device() -> str:
    """What JAX computes on in this process."""
    import jax

    found = jax.devices()[0]
    return found.device_kind if found.platform != "cpu" else f"{len(os.sched_getaffinity(0))} CPU cores"


def judged(r: Any, truth: oh.OneHiddenNet, noise: float = 0.0) -> dict[str, Any]:
    """Status, error against the truth, and why the certificate is false ("" when it is not).

    Right without noise is a worst relative error of 1e-8, with noise six standard errors.
    """
    found = in_terms_of(r.network, truth.activation.name)
    alike = found.n_hidden == truth.n_hidden and found.activation.name == truth.activation.name
    error = worst_error(found, truth) if alike else float("inf")
    near = alike and found is r.network and noise > 0 and worst_sigmas(r, truth) <= FALSE_SIGMAS
    return {
        "status": r.status,
        "message": r.message,
        "false": false_certificate(r, truth),
        "right": bool(near or error <= EXACT),
        "error": error,
        "width": r.network.n_hidden,
        "seconds": r.seconds,
        "origin": r.origin,
    }


def in_terms_of(net: oh.OneHiddenNet, activation: str) -> oh.OneHiddenNet:
    """The same function in another activation where that exists: tanh(t) = 2 sigmoid(2t) - 1."""
    if (net.activation.name, activation) == ("sigmoid", "tanh"):
        c = net.intercept + float(np.sum(net.output)) / 2
        return oh.OneHiddenNet(net.weights / 2, net.output / 2, net.bias / 2, c, "tanh")
    if (net.activation.name, activation) == ("tanh", "sigmoid"):
        c = net.intercept - float(np.sum(net.output))
        return oh.OneHiddenNet(2 * net.weights, 2 * net.output, 2 * net.bias, c, "sigmoid")
    return net


def false_certificate(r: Any, truth: oh.OneHiddenNet) -> str:
    """Why an "exact" or "consistent" verdict is wrong; empty when it is right or was not given."""
    if r.status not in ("exact", "consistent"):
        return ""
    if r.network.n_hidden != truth.n_hidden:
        return f"{r.status} with {r.network.n_hidden} units, the truth has {truth.n_hidden}"
    found = in_terms_of(r.network, truth.activation.name)
    if found.activation.name != truth.activation.name:
        return f"{r.status} with {found.activation.name}, the truth is {truth.activation.name}"
    if r.status == "exact":
        error = worst_error(found, truth)
        return "" if error <= FALSE_EXACT else f"exact with a worst relative error of {error:.1e}"
    if found is not r.network:  # standard errors stand in the other parametrisation
        return ""
    sigmas = worst_sigmas(r, truth)
    return "" if sigmas <= FALSE_SIGMAS else f"consistent, but {sigmas:.1f} standard errors from the truth"


def worst_sigmas(r: Any, truth: oh.OneHiddenNet) -> float:
    """The largest distance of a parameter from the truth in its standard errors."""
    truth = truth.canonical()
    g = truth.activation
    m = oh.match(r.network, truth)
    p, s = m.permutation, m.signs
    error = r.standard_errors
    weights, bias, output = r.network.weights[p] * s[:, None], r.network.bias[p] * s, r.network.output[p]
    intercept = r.network.intercept
    if g.reversal is not None and g.sign_free:
        turned = s < 0
        intercept += float(sum(g.reversal.polynomial[:1])) * float(np.sum(output[turned]))
        output = np.where(turned, g.reversal.parity * output, output)
    # The length of a homogeneous row is fixed, so that an entry also moves with the square of the others.
    second = np.sum(error.weights[p] ** 2, axis=1, keepdims=True) if g.homogeneity is not None else 0.0
    pairs = [
        (weights - truth.weights, error.weights[p] + second),
        (output - truth.output, error.output[p]),
        (bias - truth.bias, error.bias[p]),
        (np.array([intercept - truth.intercept]), np.array([error.intercept])),
    ]
    # Parameters that were not free have no error to speak of, only their own wrongness.
    floor = 1e-9
    return max(float(np.max(np.abs(gap) / np.maximum(sigma, floor))) for gap, sigma in pairs)


def simulated(
    family: Any,
    eta: np.ndarray,
    rng: np.random.Generator,
    phi: float = 1.0,
    trials: Any = None,
) -> np.ndarray:
    """Targets of a family at these linear predictors; of a binomial the shares of successes."""
    if family.coupled:
        edges = np.cumsum(family.probabilities(eta), axis=1)[:, :-1]
        return family.target(np.sum(rng.random((len(eta), 1)) > edges, axis=1))
    if trials is not None:
        return rng.binomial(trials.astype(int), family.mean(eta)) / trials
    return family.distribution(eta, phi).rvs(eta.shape, random_state=rng)
