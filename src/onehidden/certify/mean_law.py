"""What a network and its family take for granted of the mean of y, and the other laws it could follow.

Rows alone show piles of y and of X, and residuals whose skewness changes with the fit. Other links, and
labels that flip, are fitted as other activations are.

A piled value is one that more rows share than digits explain. Rows of rounded numbers share values with their
neighbours, too: a pile is compared with the fullest value beside it, and twice as many are allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import bdtrc, chdtrc, stdtr

from onehidden.certify import levels
from onehidden.certify.certificate import Certificate
from onehidden.certify.local_fit import LocalFit
from onehidden.certify.noise_model import fit_noise
from onehidden.checks import About, Check, at_least, not_evaluated
from onehidden.families import Bernoulli, Family
from onehidden.families.shares import FlippedLabels
from onehidden.fit.parametrisation import jacobian_pieces, roots
from onehidden.fit.problem import TO_COMPARE, Optimum, Problem, optimise
from onehidden.fit.samples import Samples
from onehidden.network import OneHiddenNet
from onehidden.run import Run
from onehidden.starts.candidate import descent_work


class Law(NamedTuple):
    """Another law of the mean, fitted."""

    name: str
    gain: float  # deviance by which it is better than the answer
    mean: Float[np.ndarray, "n ..."]  # of y at the rows
    needed: float = levels.LINK.value  # gain from which it is the better law
    contains: bool = False  # whether it holds the assumed law as a case, and so is never told from it


def compare_mean_laws(
    certificate: Certificate, problem: Problem, run: Run, operations: float = 2e10
) -> Certificate:
    """Compare the assumed link, or the scale of y, with others, and 0/1 labels with labels that flip.

    Each is fitted with as many units, from the answer's mean. One that explains the rows better by what its
    number of parameters asks for (``levels.LINK``, ``levels.OTHER_LAW``) fails the check, and so does one as
    likely whose mean leaves the answer's bands; others that the data do not tell apart are reported. A
    descent of more ``operations`` is not worth its time.
    """
    family = problem.family
    if family is not None and family.coupled:
        return certificate
    name, assumed = ("scale of y", "y") if family is None else ("link", f"the {family.link} link")
    if descent_work(problem) > operations:
        reason = "other laws of the mean were not fitted: each would take as long as the answer itself"
        return certificate.with_comparisons([not_evaluated(name, levels.LINK.value, reason)])
    laws, ahead = [], []
    for law in (_scales_of_y if family is None else _links)(certificate, problem, run):
        if run.expired():
            return certificate
        laws.append(law)
        outside = _outside_bands(certificate, problem, law.mean)
        if law.gain >= law.needed:
            ahead.append(f"{law.name} by {law.gain:.3g}")
        elif law.gain >= 0 and outside > levels.OTHER_MEAN.value:
            share = f"{100 * outside:.2g} % of the rows"
            ahead.append(f"{law.name} by {law.gain:.2g}, with a mean outside the 95 % band at {share}")
    if not laws:
        return certificate
    advice = f"deviance by which another law of the mean than that of {assumed} explains these rows better"
    if ahead:
        advice = (
            f"another law of the mean than that of {assumed} explains these rows better: {', '.join(ahead)}"
        )
    best = max(laws, key=lambda law: law.gain - law.needed)
    check = Check(name, best.gain, best.needed, not ahead, advice, About.MEAN)
    ties = [law.name for law in laws if abs(law.gain) < law.needed and not law.contains]
    remark = f"they do not tell {assumed} from {' or '.join(ties)}"
    certificate = certificate.with_comparisons([check])
    return certificate.with_remark(remark) if ties and not ahead else certificate


def _outside_bands(certificate: Certificate, problem: Problem, mean: Float[np.ndarray, "n ..."]) -> float:
    """The share of the rows where this mean of y lies outside the answer's 95 % band; 0 without bands."""
    net, form, X = certificate.network, problem.form, problem.samples.X
    if certificate.covariance is None or not np.all(np.isfinite(certificate.covariance)):
        return 0.0
    value, vector = np.linalg.eigh(certificate.covariance)
    factor, there = vector * np.sqrt(np.maximum(value, 0)), replace(form, d=X.shape[1])
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
    seen = problem.at(network)
    # Counts may spread more than their family says; 0/1 cannot, and a free phi is in the deviance.
    square = seen.least_squares.loss(seen.theta(network)) * seen.fit_coordinates.variance / seen.samples.unit
    phi = max(square / max(problem.n_values - problem.form.freedom, 1), 1.0)
    phi = 1.0 if family.scaled or type(family) is Bernoulli else phi

    def compared(label: str, law: Family, fitted: Optimum) -> Law:
        gain = problem.excess_deviance(fitted.mean_square, certificate.mean_square) / phi
        mean = law.mean(fitted.network.predict(problem.samples.X) + problem.offsets)
        return Law(label, gain, mean)

    eta = network.predict(problem.samples.X) + problem.offsets
    mean = family.mean(eta)
    for link in family.links:
        if link != family.link:
            law = replace(family, link=link)
            start = law.unlink(np.asarray(law.inside(mean, problem.n)))
            yield compared(link, law, fitted_from(network, replace(problem, family=law), start, run.at(link)))
    if type(family) is not Bernoulli:
        return
    law, fitted = FlippedLabels(family.link), None
    for number in range(3):
        law, eta = law.with_rates(y, eta, problem.samples.weight)
        fitted = fitted_from(network, replace(problem, family=law), eta, run.at("labels that flip", number))
        network = fitted.network
        eta = network.predict(problem.samples.X) + problem.offsets
    assert fitted is not None
    flipped = compared(f"{law.name} (probabilities from {law.low:.2g} to {law.high:.2g})", law, fitted)
    yield flipped._replace(needed=levels.OTHER_LAW.value, contains=True)


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
        f = fitted_from(network, rival, there.y, run.at(label)).network.predict(samples.X)
        likelihood = fit_noise(root * (there.y - f), f[:, None]).value
        middle = mean(f, there.y - f)
        by_mean = len(y) * np.log(loss / (own.weight @ (root * (y - middle)) ** 2))
        by_likelihood = 2 * (likelihood + float(np.sum(log_slope(y))) - own.value)
        yield Law(label, float(min(by_likelihood, by_mean)), middle, levels.OTHER_LAW.value)


def fitted_from(network: OneHiddenNet, rival: Problem, eta: Float[np.ndarray, "n ..."], run: Run) -> Optimum:
    """The units of a network under another law, from the outputs nearest to these predictors."""
    samples, k = rival.samples, network.n_hidden
    units = rival.activation(samples.X @ network.weights.T + network.bias)
    design = np.column_stack([units, np.ones(len(samples)), *([samples.X] if rival.form.skip else [])])
    level = np.mean(eta - rival.offsets, axis=0)
    solved = np.linalg.lstsq(design, eta - rival.offsets, rcond=1e-10)[0]
    for _ in range(50):
        linear = solved[k + 1 :] if rival.form.skip else None
        start = OneHiddenNet(network.weights, solved[:k], network.bias, solved[k], rival.activation, linear)
        if np.isfinite(rival.least_squares.loss(rival.theta(start))):
            break
        solved *= 0.8  # a link of a half-line has no likelihood beyond it: towards the constant
        solved[k] += 0.2 * level
    return optimise(start, rival, run, tolerance=TO_COMPARE)


def mean_law_checks(local: LocalFit, given: Problem) -> list[Check]:
    """Checks of y, of X and of the residuals that need no other fit, for rows in memory.

    ``given`` is the problem as it was posed, with its family.
    """
    if not isinstance(given.rows, Samples):
        return []
    found = [*_repeated_values(local, given)]
    if given.family is None or not given.family.discrete:
        found += _ends_of_target(given.rows)
    if given.family is None:
        found.append(_skewness_check(local))
    return found


def _ends_of_target(rows: Samples, fewest: int = 10) -> list[Check]:
    """Whether y is cut off: rows piled on its least or greatest value. Fewer values than this are labels."""
    level, piles, least = levels.PILES.value, [], 1.0
    for column in rows.y.reshape(len(rows), -1).T:
        value, count = np.unique(column, return_counts=True)
        if len(value) < fewest:
            continue
        for word, at, beside in (("floor", value[0], count[1:4]), ("ceiling", value[-1], count[-4:-1])):
            own = count[0] if word == "floor" else count[-1]
            p_value = pile_p_value(own, beside.max())
            least = min(least, p_value)
            if p_value < level:
                piles.append(f"y has a {word} at {at:.4g} ({100 * own / len(rows):.2g} % of the rows)")
    advice = "p-value of so many rows at the least or the greatest value of y"
    if piles:
        advice = (
            f"{' and '.join(piles)}: rows there say only that y is beyond it, and the network bends towards "
            "it; model y before it was cut off, or the share of rows that are not at the end"
        )
    return [at_least("ends of y", least, level, advice, About.MEAN)]


def pile_p_value(own: int, beside: int) -> float:
    """p-value of ``own`` rows at a value whose neighbour has ``beside``, if twice as many are expected."""
    return float(bdtrc(own - 1, own + beside, 2 / 3))


def _repeated_values(local: LocalFit, given: Problem) -> Iterator[Check]:
    """A value that many rows of a column share whose others hardly repeat: a filled gap, or a zero.

    It fails a check of the fit where those rows behave differently from those with values next to it.
    """
    rows = given.rows
    assert isinstance(rows, Samples)
    level, residual = levels.PILES.value, local.residuals
    for name, column in zip(rows.names, rows.X.T, strict=True):
        value, count = np.unique(column, return_counts=True)
        full = int(np.argmax(count))
        own, others = int(count[full]), len(rows) - int(count[full])
        beside = int(np.max(np.delete(count, full), initial=0))
        if len(value) - 1 < 0.5 * others or others < own or not pile_p_value(own, beside) < level:
            continue
        there = column == value[full]
        p_value = _differs(residual, there, np.abs(column - value[full]))
        what = f"{own} rows have {name} = {value[full]:.4g}, and hardly another value of it repeats"
        if p_value < level:
            advice = f"{what}; y spreads or lies differently there: gaps that were filled in? leave them out"
            yield at_least(f"repeated {name}", p_value, level, advice, About.MEAN)
        else:
            yield at_least(f"repeated {name}", p_value, level, f"{what}; y behaves as beside it")


def _differs(residual: Float[np.ndarray, "n q"], there: np.ndarray, distance: np.ndarray) -> float:
    """p-value of residuals at a pile like those of the twice as many nearest rows, by mean and by size."""
    m = int(there.sum())
    near = np.argsort(np.where(there, np.inf, distance), kind="stable")[: min(2 * m, int((~there).sum()))]
    found = []
    for r in residual.T:
        for values in (r, np.abs(r)):
            mine, other = values[there], values[near]
            variance = np.array([np.var(one, ddof=1) / len(one) for one in (mine, other)])
            total = float(variance.sum())
            if total > 0:
                freedom = total**2 / float(np.sum(variance**2 / [len(mine) - 1, len(other) - 1]))
                t = abs(float(mine.mean() - other.mean())) / np.sqrt(total)
                found.append(2 * float(stdtr(freedom, -t)))
    return min(1.0, len(found) * min(found, default=1.0))


def _skewness_check(local: LocalFit) -> Check:
    """Whether the skewness of the residuals changes with the fitted value, several outputs together."""
    rows = local.problem.samples
    fitted = local.network.predict(rows.X).reshape(len(rows), -1)
    z = [skewness_drift(r, f) for r, f in zip(local.residuals.T, fitted.T, strict=True)]
    p_value = float(chdtrc(len(z), np.sum(np.square(z))))
    advice = "p-value of residuals whose skewness does not change with the fitted value"
    if not p_value >= levels.SKEWNESS.value:
        advice = (
            "the skewness of the residuals changes with the fitted value: y may be measured on another "
            "scale (counts, logarithms), be cut off, or have lost rows because of its value"
        )
    return at_least("skewness", p_value, levels.SKEWNESS.value, advice, About.MEAN)


def skewness_drift(
    residual: Float[np.ndarray, " n"], fitted: Float[np.ndarray, " n"], clip: float = 3.0, reach: float = 2.5
) -> float:
    """Standardised sum of third powers of the residuals times the fitted value; normal where none drifts.

    Residuals are divided by a standard deviation that is exponential in the fitted value, cut off at ``clip``
    and freed of what a shift of the mean would add; fitted values are cut off at ``reach`` deviations.
    """
    spread = float(np.std(fitted))
    if not spread > 0 or not np.any(residual):
        return 0.0
    f = (fitted - fitted.mean()) / spread
    z = residual / _deviations(residual, f)
    z = z / np.sqrt(np.mean(z**2))
    cut = np.clip(z, -clip, clip)
    u = cut**3 - 3 * np.mean(cut**2 * (np.abs(z) < clip)) * z
    along = np.clip(f, -reach, reach)
    terms = (along - along.mean()) * (u - u.mean())
    size = float(np.sqrt(np.sum(terms**2)))
    return float(np.sum(terms)) / size if size > 0 else 0.0


def _deviations(
    residual: Float[np.ndarray, " n"], f: Float[np.ndarray, " n"], steps: int = 15
) -> Float[np.ndarray, " n"]:
    """Standard deviations exp(a + b f) by Fisher scoring; a row counts as three deviations at most."""
    design = np.column_stack([np.ones(len(f)), f])
    beta = np.array([0.5 * np.log(np.mean(residual**2)), 0.0])
    gram = design.T @ design
    for _ in range(steps):
        square = np.minimum(residual**2 * np.exp(-2 * design @ beta), 9.0)
        beta = beta + np.linalg.solve(gram, design.T @ (square - 1)) / 2
    return np.exp(design @ beta)
