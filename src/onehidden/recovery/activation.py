"""activation="auto": every named one is tried, held-out likelihood decides, ties are named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from onehidden import activations
from onehidden.checks import at_least
from onehidden.objectives.residuals import Form
from onehidden.recovery.certificate import EXACT_RMS, with_check
from onehidden.recovery.coordinates import Coordinates
from onehidden.recovery.halves import fit_halves
from onehidden.recovery.samples import Samples
from onehidden.recovery.search import Effort, Found, finishing, in_time

_SCOUTS = 2  # candidates looked at for each activation at first
_FINALISTS = 3
_TIE = 6.0  # twice the difference of held-out log-likelihoods below which two activations are a tie


def choose_activation(
    samples: Samples,
    form: Form,
    around: Coordinates,
    effort: Effort,
    find: Callable[[Form, Effort], Found],
) -> Found:
    """The answer under the activation with the largest held-out likelihood.

    A short search under each activation, then a full one under the best few; a certified exact answer ends
    the choice at once. ``find(form, effort)`` is the search, at given or chosen width.
    """
    scouted: dict[str, Found] = {}
    for name in rivals(form.intercept):
        rival = replace(form, activation=activations.get(name))
        scouted[name] = find(rival, replace(effort, tries=_SCOUTS))
        effort.clock.report(f"activation {name}", 0, scouted[name].certificate.rms ** 2)
        if scouted[name].certificate.status == "exact":
            return _with_rivals(name, scouted, {name: 0.0}, len(samples), form)
        if effort.clock.expired():
            break
    best = sorted(scouted, key=lambda name: scouted[name].certificate.rms)[:_FINALISTS]
    for name in best:
        # Once one activation explains all but noise, a full search under the others would only take time.
        if effort.clock.expired() or any(scouted[other].certificate.settled for other in best):
            break
        scouted[name] = find(replace(form, activation=activations.get(name)), effort)
    outside = {name: _held_out(samples, form, around, scouted[name], effort) for name in best}
    chosen = min(outside, key=lambda name: outside[name])
    return in_time(_with_rivals(chosen, scouted, outside, len(samples), form), effort.clock)


def rivals(intercept: bool) -> list[str]:
    """Names to try: polynomials hide their units, and with an intercept sigmoid is tanh in other words."""
    named = [name for name in activations.names() if not activations.get(name).polynomial]
    return [name for name in named if not (intercept and name == "sigmoid")]


def _held_out(samples: Samples, form: Form, around: Coordinates, found: Found, effort: Effort) -> float:
    """Mean squared residual on rows that a half-sample fit did not use."""
    network = found.certificate.network
    if found.certificate.rms <= EXACT_RMS:
        return found.certificate.rms**2
    own = replace(form, activation=network.activation, k=network.n_hidden)
    end, stop = finishing(own, around), effort.clock.expired
    return fit_halves(network, own, end, samples, effort.seed, stop).outside


def _with_rivals(
    chosen: str, found: dict[str, Found], outside: dict[str, float], n: int, form: Form
) -> Found:
    """The chosen answer with a check that says how far the next best activation is."""
    others = sorted((name for name in outside if name != chosen), key=lambda name: outside[name])
    same = " (sigmoid units are the same family: g(t) = (1 + tanh(t/2))/2)" if chosen == "tanh" else ""
    if outside[chosen] <= EXACT_RMS**2:
        gap, advice = float("inf"), f"{chosen} fits to rounding{same}"
    elif not others:
        gap, advice = 0.0, f"only {chosen} was tried: allow more time"
    else:
        gap = n * float(np.log(outside[others[0]] / outside[chosen]))
        advice = (
            f"twice the held-out log-likelihood of {chosen} above the runner-up, {others[0]}{same}; below "
            f"{_TIE:g} the data do not tell them apart"
        )
    certificate = with_check(found[chosen].certificate, at_least("activation", gap, _TIE, advice))
    return replace(found[chosen], certificate=certificate)
