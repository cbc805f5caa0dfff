"""The number of units from the data: a wide student for a guess, finished fits to decide."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from onehidden.checks import at_least
from onehidden.objectives.residuals import Form
from onehidden.recovery.certificate import EXACT_RMS, with_check
from onehidden.recovery.coordinates import Coordinates
from onehidden.recovery.samples import Samples
from onehidden.recovery.search import Effort, Found, in_time, search
from onehidden.starts.candidate import fixed_columns, search_form, unit_columns
from onehidden.starts.prune import elimination_losses
from onehidden.starts.wide import WideAndPrune, merged_units, train

_MOST = 64  # units looked for
_WORSE = 2  # widths in a row that may make the criterion worse
_TRIES = 4  # candidates looked at for each width on the way
_TIE = 6.0  # difference of information criteria that does not tell
_CLEAR = 5 * _TIE  # by which both neighbours fall behind, refined from the answer: no search of their own


def choose_width(samples: Samples, form: Form, around: Coordinates, effort: Effort) -> Found:
    """The finished fit with the smallest Bayesian information criterion, climbing from a guess.

    A fit to rounding ends the climb when its parameters are all determined: one unit fewer cannot fit,
    one more would be undetermined.
    """
    each = form.freedom  # free parameters of one unit
    n, clock = len(samples), effort.clock
    most = int(min(_MOST, max(1, (n - 1) // (2 * each))))
    fits: dict[int, Found] = {}

    def at(k: int) -> Found:
        if k not in fits:
            fits[k] = search(samples, replace(form, k=k), around, replace(effort, tries=_TRIES))
        return fits[k]

    k = guess_width(samples, form, around, effort, most)
    at(k)  # whatever the clock says: an answer is owed
    visited: set[int] = set()
    while k not in visited and not clock.expired():
        visited.add(k)
        certificate = at(k).certificate
        if certificate.rms <= EXACT_RMS and not certificate.undetermined:
            break
        if certificate.rms <= EXACT_RMS or certificate.undetermined:
            k = max(1, k - 1)
        elif "one unit fewer" in certificate.failed:
            k = max(1, k - 1)
        elif certificate.failed & {"fit", "gradient", "agreement", "one unit more"}:
            if len(visited) > _WORSE and _worsening(fits, visited, n):
                break
            k = min(most, k + 1)
        elif min(_behind(at(k)).values(), default=0.0) < _CLEAR and not clock.expired():
            near = (j for j in (k - 1, k, k + 1) if 1 <= j <= most and (j in fits or not clock.expired()))
            k = min(near, key=lambda j: _criterion(at(j), n))
    return in_time(_with_runner_up(fits, n), clock)


def _worsening(fits: dict[int, Found], visited: set[int], n: int) -> bool:
    """Whether the last few widths on the way up each made the criterion worse: the model is wrong."""
    last = [_criterion(fits[k], n) for k in sorted(visited)[-_WORSE - 1 :]]
    return all(b > a for a, b in pairwise(last))


def guess_width(samples: Samples, form: Form, around: Coordinates, effort: Effort, most: int) -> int:
    """Where the elimination path of one wide student stops falling, by the information criterion."""
    n = len(samples)
    Z, target = around.inputs(samples.X), around.target(samples.y)
    bias = form.bias or bool(np.any(np.abs(around.shift @ around.whiten) > 3 / np.sqrt(n)))
    wide = search_form(form.activation, form.d, max(128, 4 * most), bias)
    theta = train(
        wide, WideAndPrune(wide.k), Z, target, effort.seed, effort.clock.expired,
        lambda step, loss: effort.clock.report("width scout", step, loss), samples.weight,
        effort.clock.memo,
    )  # fmt: skip
    root = np.sqrt(n * samples.share)
    columns = unit_columns(wide, Z, *merged_units(wide, theta)[:2]) * root[:, None]
    losses = elimination_losses(columns, fixed_columns(wide, Z) * root[:, None], target * root, most)
    widths = np.arange(1, len(losses) + 1)
    return int(widths[np.argmin(n * np.log(np.maximum(losses, 1e-12)) + form.freedom * widths * np.log(n))])


def _criterion(found: Found, n: int) -> float:
    certificate = found.certificate
    # A fit to rounding counts as a fit to EXACT_RMS: digits beyond it are no evidence for more units.
    rms = max(certificate.rms, EXACT_RMS)
    return 2 * n * float(np.log(rms)) + certificate.freedom * float(np.log(n))


def _behind(found: Found) -> dict[int, float]:
    """By how much one unit more and one fewer, each refined from the answer, worsen the criterion."""
    k = found.certificate.network.n_hidden
    value = {check.name: check.value for check in found.certificate.checks}
    sides = {k + 1: -value.get("one unit more", np.nan), k - 1: value.get("one unit fewer", np.nan)}
    return {width: gap for width, gap in sides.items() if np.isfinite(gap)}


def _with_runner_up(fits: dict[int, Found], n: int) -> Found:
    """The best width, with a check that says how far the next best is."""
    ranked = sorted(fits, key=lambda k: _criterion(fits[k], n))
    done = {k: found.certificate for k, found in fits.items()}
    exact = [k for k in ranked if done[k].rms <= EXACT_RMS and not done[k].undetermined]
    best = fits[exact[0] if exact else ranked[0]]
    others = {k: _criterion(fits[k], n) - _criterion(best, n) for k in ranked if fits[k] is not best}
    others = _behind(best) | others  # a search of its own counts for more
    if exact:
        gap, advice = float("inf"), "an exact fit with all parameters determined needs no runner-up"
    elif not others:
        gap, advice = 0.0, "no other width was tried: allow more time"
    else:
        runner_up = min(others, key=lambda k: others[k])
        gap = others[runner_up]
        advice = (
            f"information criterion of the runner-up, {runner_up} units, above the chosen; below "
            f"{_TIE:.0f} is a tie"
        )
    width = at_least("width", gap, _TIE, advice)
    return replace(best, certificate=with_check(best.certificate, width))
