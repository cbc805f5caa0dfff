"""Other laws that an answer could follow, each fitted from its units: activations, links, scales of y.

A law is better where it explains the rows better by what its number of parameters asks for, or is as likely
with a mean of y outside the answer's bands. Laws that are neither better nor worse by that are reported: the
parameters are those under the assumed one, and under another the same mean has others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from onehidden import activations
from onehidden.certify import levels
from onehidden.certify.certificate import Alternative, AlternativeKind, Certificate, Status
from onehidden.certify.noise_model import OwnLikelihood, fit_noise
from onehidden.checks import About, Check, not_evaluated
from onehidden.families import Bernoulli, Family
from onehidden.families.shares import FlippedLabels
from onehidden.fit.parametrisation import jacobian_pieces, roots
from onehidden.fit.problem import TO_COMPARE, Optimum, Problem, optimise, searched, with_best_outputs
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.starts.candidate import descent_work
from onehidden.starts.restarts import Random

# Operations of a descent: n = 10 000 and 110 parameters take 1.5e10, a few seconds.
WORTH_ITS_TIME = 2e10


class Law(NamedTuple):
    """Another law, fitted."""

    name: str
    gain: float  # twice the log likelihood, or the deviance, by which it is better than the answer
    needed: float  # gain from which it is the better law
    mean: Float[np.ndarray, "n ..."] | None = None  # of y at the rows, where the answer's bands must hold it
    network: OneHiddenNet | None = None  # with other units than the answer's, where it is an alternative


def compare_activations(certificate: Certificate, problem: Problem, run: Run) -> Certificate:
    """Compare with other activations, each fitted from the units found and from random ones.

    Where all of them would take long, with those alone that noise often hides behind the assumed one.
    """
    if certificate.status_if_comparisons_pass is Status.APPROXIMATE:
        return certificate
    g, kind = problem.activation, AlternativeKind.SIMILAR_ACTIVATION.value
    every = [name for name in activations.names(compared=True) if not activations.get(name).polynomial]
    cheap = len(every) * descent_work(problem) <= WORTH_ITS_TIME
    names = list(dict.fromkeys((*g.relatives, *every) if cheap else g.relatives))
    names = [name for name in names if name not in (g.name, g.equivalent)]
    if "tanh" in names and "sigmoid" in names:
        names.remove("sigmoid")
    if not names:
        reason = f"no relatives of {g.name} are known that noise could hide behind it"
        return certificate.with_comparisons([not_evaluated(kind, 0.0, reason)])

    def laws() -> Iterator[Law]:
        own = OwnLikelihood.of_answer(certificate, problem, run)
        for name in names:
            rival = problem.with_activation(activations.get(name))
            network = fitted_from(certificate.network, rival, run.at(name)).network
            its = OwnLikelihood.of(rival, network, run.at(name))
            yield Law(name, its.ahead(own), levels.OTHER_LAW.value, network=network)

    return _held_against(certificate, problem, laws(), kind, g.name, About.FIT, run)


def compare_mean_laws(certificate: Certificate, problem: Problem, run: Run) -> Certificate:
    """Compare the assumed link, or the scale of y, with others, and 0/1 labels with labels that flip.

    Each is fitted with as many units, from the answer's mean.
    """
    family = problem.family
    if family is not None and family.coupled:
        return certificate
    if family is None:
        laws, name, assumed = _scales_of_y(certificate, problem, run), "scale of y", "y"
    else:
        laws, name, assumed = _links(certificate, problem, run), "link", f"the {family.link} link"
    return _held_against(certificate, problem, laws, name, assumed, About.MEAN, run)


def _held_against(
    certificate: Certificate,
    problem: Problem,
    laws: Iterator[Law],
    name: str,
    assumed: str,
    about: About,
    run: Run,
) -> Certificate:
    """The certificate with the check of other laws; those that the rows do not tell apart are reported."""
    if descent_work(problem) > WORTH_ITS_TIME:
        reason = "other laws were not fitted: each would take as long as the answer itself"
        remark = f"the check {name!r} was not evaluated, as it would take as long as the answer"
        return certificate.with_comparisons([not_evaluated(name, 0.0, reason)]).with_remark(remark)
    found, ahead, close = list[Law](), list[str](), list[Alternative]()
    for law in laws:
        if run.expired():
            return certificate
        found.append(law)
        outside = 0.0 if law.mean is None else _outside_bands(certificate, problem, law.mean)
        if law.gain >= law.needed:
            ahead.append(f"with {law.name} they are clearly more likely")
        elif law.gain >= 0 and outside > levels.OTHER_MEAN.value:
            share = f"{100 * outside:.2g} % of the rows"
            ahead.append(f"with {law.name} no less likely, and the mean outside its 95 % band at {share}")
        if law.network is not None and law.gain > -law.needed:
            kind, units = AlternativeKind.SIMILAR_ACTIVATION, tuple(range(problem.k))
            close.append(Alternative(kind, law.name, -law.gain, law.network, units, law.needed))
    if not found:
        return certificate
    advice = f"twice the log likelihood by which another law than {assumed} explains these rows better"
    if ahead:
        advice = f"these rows speak against {assumed}: {', '.join(ahead)}"
    best = max(found, key=lambda law: law.gain - law.needed)
    check = Check(name, best.gain, best.needed, not ahead, advice, about)
    certificate = certificate.with_comparisons([check], close)
    ties = [law.name for law in found if abs(law.gain) < law.needed]
    remark = f"they do not tell {assumed} from {' or '.join(ties)}, under which the parameters are others"
    return certificate.with_remark(remark) if ties and not ahead else certificate


def _outside_bands(certificate: Certificate, problem: Problem, mean: Float[np.ndarray, "n ..."]) -> float:
    """The share of the rows where this mean of y lies outside the answer's 95 % band; 0 without bands."""
    net, form, X = certificate.network, problem.form, problem.samples.X
    if certificate.covariance is None or not np.all(np.isfinite(certificate.covariance)):
        return 0.0
    value, vector = np.linalg.eigh(certificate.covariance)
    factor, there = vector * np.sqrt(np.maximum(value, 0)), replace(form.plain, d=X.shape[1])
    theta = there.pack(net.weights, net.output, net.bias, net.linear, net.intercept)
    pieces = jacobian_pieces(there, theta, X, np.zeros_like(problem.samples.y), None)
    error = np.concatenate([np.sqrt(np.sum((J @ factor) ** 2, axis=1)) for _, J in pieces])
    eta, reach = net.predict(X) + problem.offsets, 1.96 * error.reshape(mean.shape)
    low, high = eta - reach, eta + reach
    if problem.family is not None:
        low, high = (problem.family.mean(end) for end in (low, high))
    return float(np.mean((mean < np.minimum(low, high)) | (mean > np.maximum(low, high))))


def _links(certificate: Certificate, problem: Problem, run: Run) -> Iterator[Law]:
    """How much better the other links of the family are, and where y is 0/1 labels that flip."""
    family, y, network = problem.family, problem.samples.y, certificate.network
    assert family is not None
    own = OwnLikelihood.of_answer(certificate, problem, run)

    def compared(label: str, law: Family, fitted: Optimum) -> Law:
        its = OwnLikelihood.of(replace(problem, family=law), fitted.network, run)
        mean = law.mean(fitted.network.predict(problem.samples.X) + problem.offsets)
        return Law(label, its.ahead(own), levels.LIKELIHOOD.value, mean)

    for link in family.links:
        if link != family.link:
            law = replace(family, link=link)
            yield compared(link, law, fitted_from(network, replace(problem, family=law), run.at(link)))
    if type(family) is not Bernoulli:
        return
    law = FlippedLabels(family.link)
    # Few flips cost little likelihood and make the outputs much larger.
    for label, one in (("zeros", replace(law, high=1 - 1e-4)), ("ones", replace(law, low=1e-4))):
        fitted = fitted_from(network, replace(problem, family=one), run.at("labels that flip", label))
        yield compared(f"{law.name} ({100 * law.low:.2g} % of the {label})", one, fitted)
    fitted = Optimum(network, certificate.mean_square)
    for number in range(2):
        eta = fitted.network.predict(problem.samples.X) + problem.offsets
        law, _ = law.with_rates(y, eta, problem.samples.weight)
        fitted = fitted_from(fitted.network, replace(problem, family=law), run.at("labels that flip", number))
    flipped = compared(f"{law.name} (probabilities from {law.low:.2g} to {law.high:.2g})", law, fitted)
    if flipped.gain >= levels.OTHER_LAW.value:  # it holds the assumed law as a case, and is never worse
        yield flipped._replace(needed=levels.OTHER_LAW.value)


# Scales on which an amount may follow a network: y there, log of the slope, the mean of y of fit and noise.
_SCALES = {
    "log(y)": (np.log, lambda y: -np.log(y), lambda f, r: np.exp(f) * np.mean(np.exp(r))),
    "sqrt(y)": (np.sqrt, lambda y: -0.5 * np.log(4 * y), lambda f, r: f**2 + np.mean(r**2)),
}


def _scales_of_y(certificate: Certificate, problem: Problem, run: Run) -> Iterator[Law]:
    """How much better other scales of one output are, all of whose values are above zero.

    Both by the likelihood of y, each scale with a spread of its own that follows its fit, and by the squared
    error of the mean of y it implies, relative to the answer's spread: the shape of the noise alone does not
    make a scale right.
    """
    samples, network = problem.samples, certificate.network
    y = samples.y
    if y.ndim > 1 or problem.offset is not None or not np.min(y) > 0:
        return
    root = roots(samples.weight, len(y))
    fitted = network.predict(samples.X)
    own = fit_noise(root * (y - fitted), fitted[:, None])
    loss = own.weight @ (root * (y - fitted)) ** 2
    for label, (scale, log_slope, mean) in _SCALES.items():
        there = replace(samples, y=scale(y))
        around = there.coordinates(problem.form.bias)
        whitening = replace(problem.whitening, level=around.level, scale=around.scale)
        rival = replace(problem, rows=there, whitening=whitening)
        f = fitted_from(network, rival, run.at(label)).network.predict(samples.X)
        likelihood = fit_noise(root * (there.y - f), f[:, None]).value
        middle = mean(f, there.y - f)
        by_mean = len(y) * np.log(loss / (own.weight @ (root * (y - middle)) ** 2))
        by_likelihood = 2 * (likelihood + float(np.sum(log_slope(y))) - own.value)
        yield Law(label, float(min(by_likelihood, by_mean)), levels.OTHER_LAW.value, middle)


def fitted_from(network: OneHiddenNet, rival: Problem, run: Run, restarts: int = 3) -> Optimum:
    """The best fit of another law from units of a network and, where descents are cheap, from random ones.

    From units of tanh a network of softplus is hardly found: its units do other things.
    """
    units = replace(network, activation=rival.activation)
    best = optimise(with_best_outputs(units, rival), rival, run, tolerance=TO_COMPARE)
    cheap, space = 20 * descent_work(rival) <= WORTH_ITS_TIME, searched(rival)
    for number, one in enumerate(Random(restarts).propose(space, run) if cheap else ()):
        start = space.search_coordinates.outward(one.network)
        fitted = optimise(start, rival, run.at("restart", number), tolerance=TO_COMPARE)
        best = min(best, fitted, key=lambda one: one.mean_square)
    return best
