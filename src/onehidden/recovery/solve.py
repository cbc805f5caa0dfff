"""From samples in memory to an answer and its record, at the width and activation asked for, or chosen.

An activation is chosen by held-out likelihood. A width is guessed, approached by the information criterion
and decided by tests.
"""

from __future__ import annotations

import platform
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

import numpy as np
from jaxtyping import Float

from onehidden import __version__, activations
from onehidden.certify.alternatives import all_worse, held_out_by_halves
from onehidden.certify.certificate import Alternative, AlternativeKind, Certificate, Status, certificate_of
from onehidden.certify.units import Cause
from onehidden.checks import About, not_evaluated
from onehidden.families import Family, Gaussian, NegativeBinomial
from onehidden.fit.coordinates import Coordinates, scaled
from onehidden.fit.parametrisation import roots, weighed
from onehidden.fit.problem import TO_COMPARE, Problem, linear_network, optimise, searched
from onehidden.fit.samples import Rows, Samples
from onehidden.network import OneHiddenNet
from onehidden.options import Options
from onehidden.recovery.guard import LeftOut, guarded
from onehidden.recovery.line import measures
from onehidden.recovery.record import Recovery
from onehidden.recovery.search import Found, compared, search
from onehidden.recovery.target import Target
from onehidden.refused import Refused
from onehidden.run import Run
from onehidden.starts.candidate import InputModel, search_form
from onehidden.starts.repair import best_losses
from onehidden.starts.schedule import proposals
from onehidden.starts.wide import Wide, merged_units, train


def problem_of(
    samples: Samples,
    options: Options,
    family: Family | None = None,
    offset: Float[np.ndarray, " n"] | None = None,
    trials: Float[np.ndarray, " n"] | None = None,
) -> Problem:
    """Return the problem of samples and options, with the family of y, offset and trials if any."""
    outputs = samples.y.shape[1] if samples.y.ndim == 2 else None
    known = options.known
    if known is None:
        around = samples.coordinates(options.bias)
    else:
        around = scaled(samples.X, samples.y, samples.share, known.by_column, options.bias)
    problem = Problem(samples, options.form(around.rank, outputs), around)
    if around.constant:
        return problem
    if problem.form.free is None:
        around = around.turned(samples.axes(around))
    problem = replace(problem, whitening=around)
    if family is not None:  # the network's output has units of its own
        level, scale = (0.0, 1.0) if outputs is None else (np.zeros(outputs), np.eye(outputs))
        around = replace(around, level=level, scale=scale)
        problem = replace(problem, whitening=around, family=family, offset=offset, trials=trials)
    return replace(problem, input_model=InputModel(options.score, options.seed))


def solve(problem: Problem, options: Options, run: Run) -> Found:
    """Return the answer to a problem whose rows are in memory."""
    found = search_units(problem, options, run)
    if options.activation == "auto":
        return found
    return found if options.hidden is None else compared(found, problem, options, run)


def search_units(problem: Problem, options: Options, run: Run) -> Found:
    """The answer of a search, under an activation that is given or chosen."""
    return (choose_activation if options.activation == "auto" else _searched)(problem, options, run)


def _searched(problem: Problem, options: Options, run: Run, tries: int | None = None) -> Found:
    """The answer of a search at the width that is given, or chosen."""
    return (choose_width if options.hidden is None else search)(problem, options, run, tries)


def choose_activation(
    problem: Problem, options: Options, run: Run, candidates: int = 2, finalists: int = 3
) -> Found:
    """Return the answer under the activation with the largest held-out likelihood.

    A search of a few candidates under each activation, then a full one under the finalists; a certified
    exact answer ends the choice at once.
    """
    tried: dict[str, Found] = {}
    rival = {
        name: problem.with_activation(activations.get(name))
        for name in tried_activations(problem.form.intercept)
    }
    for name in rival:
        tried[name] = _searched(rival[name], options, run.at("activation", name, "short"), candidates)
        run.report(f"activation {name}", 0, tried[name].certificate.mean_square)
        if tried[name].certificate.status == Status.EXACT:
            return tried[name]
        if run.expired():
            break
    best = sorted(tried, key=lambda name: tried[name].certificate.mean_square)[:finalists]
    for name in best:
        # Once one activation explains all but noise, a full search under the others would only take time.
        if run.expired() or any(tried[other].certificate.search_done for other in best):
            break
        tried[name] = _searched(rival[name], options, run.at("activation", name, "full"))
    outside = {name: _held_out(rival[name], tried[name], run.at("held out", name)) for name in best}
    chosen = min(outside, key=lambda name: outside[name])
    found = tried[chosen]
    if not found.certificate.compared:
        own = rival[chosen].with_width(found.certificate.network.n_hidden)
        found = compared(found, own, options, run.at("chosen"))
    return _with_rivals(chosen, found, outside, problem)


def tried_activations(intercept: bool) -> list[str]:
    """Names to try: polynomials hide their units, and with an intercept sigmoid is tanh in other words."""
    found: list[str] = []
    for name in reversed(activations.names(compared=True)):
        g = activations.get(name)
        if not (g.polynomial or (intercept and g.equivalent in found)):
            found.append(name)
    return found[::-1]


def _held_out(problem: Problem, found: Found, run: Run) -> float:
    """Mean squared residual, or mean deviance, on rows that a half-sample fit did not use."""
    certificate, network = found.certificate, found.certificate.network
    if certificate.exact:
        return certificate.mean_square
    return held_out_by_halves(network, problem.with_width(network.n_hidden), run)


def _with_rivals(chosen: str, found: Found, outside: dict[str, float], problem: Problem) -> Found:
    """Return the chosen answer compared with the next best activation."""
    certificate = found.certificate
    if certificate.exact:
        return found
    behind = {name: problem.excess_deviance(outside[chosen], loss) for name, loss in outside.items()}
    kind = AlternativeKind.SELECTED_ACTIVATION
    others = [Alternative(kind, name, gap) for name, gap in behind.items() if name != chosen]
    if not others:
        why = f"could not be evaluated: only {chosen} was tried: allow more time"
        check = not_evaluated(kind.value, float("nan"), why, About.FIT)
        return replace(found, certificate=certificate.with_comparisons([check]))
    ties = [one.label for one in others if one.close]
    if ties:
        certificate = certificate.with_remark(f"held-out rows do not tell {chosen} from {' or '.join(ties)}")
    if chosen == "tanh":
        certificate = certificate.with_remark("sigmoid is the same: g(t) = (1 + tanh(t/2))/2")
    certificate = certificate.with_comparisons([all_worse(others, kind)], others)
    return replace(found, certificate=certificate)


def choose_width(
    problem: Problem, options: Options, run: Run, tries: int | None = None, most: int = 64, each: int = 4
) -> Found:
    """Return the width that stands against one unit more and one fewer, searched from a guess.

    A fit to rounding ends the search when its parameters are all determined: one less cannot fit, one more
    would be undetermined. With noise every width on the way is compared with its neighbours by tests
    that account for a unit's direction; the information criterion decides where no width stands.

    ``tries`` bounds the candidates of every search, None stands for a full choice; ``most`` is the largest
    width that is tried, ``each`` the candidates tried for each width on the way.
    """
    one = problem.with_width(1)
    n, freedom = problem.n_values, one.form.freedom  # free parameters of one unit
    most = int(min(most, max(1, (n - 1) // (2 * freedom))))
    each = each if tries is None else min(tries, each)
    fits: dict[int, Found] = {}
    k = 1 if one.form.structure else guess_width(searched(one), run.at("width guess"), most)
    # Whatever the clock says: there must be an answer.
    while not fits or (k not in fits and not run.expired()):
        fits[k] = _at_width(k, problem, options, run.at("width", k), each, tries is None)
        certificate = fits[k].certificate
        if certificate.status.certified or certificate.status_if_comparisons_pass is Status.CONSISTENT:
            break
        if certificate.exact or certificate.undetermined:
            k = max(1, k - 1)
        elif certificate.failed(About.FIT, About.SEARCH):
            last = [_criterion(fits[k], problem) for k in sorted(fits)[-3:]]
            if len(fits) > 2 and all(b > a for a, b in pairwise(last)):
                break  # two widths in a row made it worse: the model is wrong
            k = min(most, k + 1)
    # One that stands, else the least criterion.
    ranked = sorted(fits, key=lambda k: _criterion(fits[k], problem))
    best = next((k for k in ranked if fits[k].certificate.status.certified), ranked[0])
    if tries is None and not fits[best].certificate.compared:
        # What misses something may still be the best of its kind.
        return compared(fits[best], problem.with_width(best), options, run.at("width", best))
    return fits[best]


def _at_width(k: int, problem: Problem, options: Options, run: Run, tries: int, full: bool) -> Found:
    """The answer at a width; in a full choice with more starts, and with alternatives, where it may stand."""
    own = problem.with_width(k)
    found = search(own, options, run, tries)
    if not full or run.expired():
        return found
    certificate = found.certificate
    if found.unconfirmed and not (certificate.failed(About.FIT) or certificate.undetermined):
        # More starts, not more units.
        found = min(found, search(own, options, run), key=lambda one: one.certificate.mean_square)
    if found.certificate.status_if_comparisons_pass is Status.CONSISTENT:
        found = compared(found, own, options, run)
    return found


def guess_width(problem: Problem, run: Run, most: int) -> int:
    """Units left by backward elimination of a wide network where the information criterion is least."""
    settings = Wide(max(128, 4 * most))
    wide = search_form(problem, settings.units(problem))
    theta = train(wide, settings, problem, run, "width guess")
    losses = best_losses(problem, *merged_units(wide, theta)[:2], most)
    widths, n = np.arange(1, len(losses) + 1), problem.n_values
    charged = problem.form.freedom * widths * np.log(problem.n)
    return int(widths[np.argmin(n * np.log(np.maximum(losses, problem.rows.rounding.near**2)) + charged)])


def _criterion(found: Found, problem: Problem) -> float:
    # Digits beyond rounding are no evidence for more units.
    mean_square = max(found.certificate.mean_square, problem.rows.rounding.exact**2)
    charged = found.certificate.n_parameters * float(np.log(problem.n))
    if isinstance(problem.family, NegativeBinomial):  # deviances of different alphas do not compare
        samples, network = problem.samples, found.certificate.network
        eta = network.predict(samples.X) + problem.offsets
        return problem.family.misfit(samples.y, eta, samples.weight) + charged
    return problem.deviance(mean_square) + charged


def plain_fit(target: Target, options: Options, reason: str) -> Recovery:
    """The record of a penalised linear model, beside a unit that adds nothing, for this reason."""
    samples = target.samples
    d, tail = samples.X.shape[1], samples.y.shape[1:]
    form = options.form(d, tail[0] if tail else None)
    around = Coordinates(np.eye(d), np.eye(d), np.zeros(d), 0.0, 1.0, np.zeros((d, 0)))
    problem = Problem(samples, form, around, family=target.family, offset=target.offset)
    rows = LeftOut(problem, Run(options.seed))
    reason = f"{reason}, so {rows.name} stands in"
    net = OneHiddenNet(np.eye(1, d), np.zeros((1, *tail)), None, rows.line.level, options.g, rows.line.slope)
    found = measures(samples.X, samples.y, samples.row_weight)
    prediction = replace(rows.of_line(reason), message=reason)
    found |= {"family": target.family, "classes": target.classes, "prediction": prediction}
    loss = float(np.sum(rows.losses(rows.line(samples.X))))
    # Whatever the reason, no hidden unit was searched for.
    check = not_evaluated("samples per parameter", len(samples) / (d + 2), reason, About.DATA)
    certificate = certificate_of(
        net,
        [check],
        loss=loss,
        exact=loss == 0,
        n=problem.n,
        n_parameters=form.freedom,
        undetermined={0: (Cause.NOTHING, reason)},
    )
    found["r_squared"] = float("nan") if rows.constant else rows.explained(rows.line(samples.X))
    return record(certificate, "plain fit", samples, options.to_dict(), Run(), **found)


def constant_fit(target: Target, options: Options) -> Recovery:
    """The record of a target that does not vary."""
    reason = f"y is constant ({target.samples.y.flat[0]:g}): there is nothing to recover from it"
    return plain_fit(target, options, reason)


def held_against_ridge(
    certificate: Certificate, problem: Problem, options: Options, run: Run, tries: int = 4
) -> dict[str, Any]:
    """Fields of the record from rows in memory: what to predict with, and what they measure.

    A search without some of the rows finishes ``tries`` candidates.
    """

    def refit(part: Problem, run: Run) -> OneHiddenNet:
        quiet = replace(run, listener=False, trace=[])
        near = part if part.family is None else part.at(linear_network(part))
        begun = islice(proposals(near, options.start, quiet), tries)
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

    prediction = guarded(certificate, problem.marginal, refit, run)
    return measured_on(problem, certificate) | {"prediction": prediction}


def record(
    certificate: Certificate,
    origin: str,
    rows: Rows,
    options: dict[str, object],
    run: Run,
    **more: Any,
) -> Recovery:
    """Return the record of a certificate; ``more`` are fields from elsewhere (``held_against_ridge``)."""
    import jax

    versions = {"onehidden": __version__, "jax": jax.__version__, "numpy": np.__version__}
    found: dict[str, Any] = {name: getattr(certificate, name) for name in _SHARED}
    found |= {
        "seconds": run.seconds(),
        "trace": run.trace,
        "origin": origin,
        "n_samples": rows.n,
        "feature_names": rows.names,
        "options": options,
        "versions": versions | {"python": platform.python_version()},
        "alternatives": tuple(
            one for one in certificate.alternatives if one.close and one.network is not None
        ),
        "freedom": certificate.n_parameters,
        "error_freedom": certificate.freedom,
        "left_over": certificate.missed_share,
        "r_squared": 1 - certificate.mean_square,
    }
    return Recovery(**(found | more))


# What a record has from the certificate under the same name.
_SHARED = (
    "network", "status", "message", "checks", "standard_errors", "units", "covariance", "undetected",
    "by_group", "loss", "noise_variance", "covariance_type",
)  # fmt: skip


def log_likelihood(problem: Problem, certificate: Certificate) -> float:
    """The log-likelihood at the estimates; NaN of exact fits, of a binomial and of noise with covariances."""
    samples, family = problem.samples, problem.family or Gaussian("identity")
    eta = certificate.network.predict(samples.X)
    if family.coupled:  # of labels the deviance is all there is
        return -0.5 * float(np.sum(problem.row_losses(certificate.network)))
    if certificate.exact or family.counted or samples.ratio is not None or samples.y.ndim > 1:
        return float("nan")
    weight = np.ones(samples.n) if samples.row_weight is None else samples.row_weight
    if problem.family is None:
        law, weight = family.distribution(eta, certificate.loss / weight), np.ones(samples.n)
    else:
        law = family.distribution(eta + problem.offsets, certificate.noise_variance if family.scaled else 1.0)
    return float(weight @ (law.logpmf if family.discrete else law.logpdf)(samples.y))


def measured_on(problem: Problem, certificate: Certificate) -> dict[str, Any]:
    """Means and spreads of the rows, and the share of the variance, or of the deviance, that is explained."""
    samples = problem.samples
    found = measures(samples.X, samples.y, samples.row_weight)
    found["log_likelihood"] = log_likelihood(problem, certificate)
    if problem.family is not None:
        family, line = problem.family, linear_network(problem)
        total = float(np.sum(problem.row_losses(linear_network(problem, inputs=False))))
        found["r_squared"] = 1 - certificate.mean_square * problem.n_values / total
        found["linear_r_squared"] = 1 - float(np.sum(problem.row_losses(line))) / total
        return found | {"family": family}
    variance = samples.share @ (samples.y - samples.share @ samples.y) ** 2
    if samples.ratio is not None:  # the certificate has what rows of a group do not share
        own, shared = certificate.noise_variance, certificate.noise_variance * samples.ratio
        loss = float(samples.share @ (certificate.network.predict(samples.X) - samples.y) ** 2)
        found |= {"loss": loss, "r_squared": 1 - loss / variance}
        found |= {"noise_variance": own + shared, "group_variance": shared}
    if problem.form.outputs is not None:
        residual = certificate.network.predict(samples.X) - samples.y
        residual = weighed(roots(samples.weight, samples.n), residual)
        spare = max(samples.n - certificate.n_parameters / problem.form.q, 1)
        found["r_squared"] = 1 - certificate.loss / float(np.mean(variance))
        found["noise_covariance"] = residual.T @ residual / spare
    return found
