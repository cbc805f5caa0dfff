"""activation="auto": every named one is tried, held-out likelihood decides, ties are named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from onehidden import activations
from onehidden.certify.compare import Alternative, Kind, falls_behind, not_compared
from onehidden.certify.halves import fit_halves
from onehidden.certify.status import Status
from onehidden.fit.problem import Problem
from onehidden.recovery.options import Options
from onehidden.recovery.search import Found, compared
from onehidden.run import Run

_SCOUTS = 2  # candidates looked at for each activation at first
_FINALISTS = 3

Find = Callable[[Problem, Run, int | None], Found]


def choose_activation(problem: Problem, options: Options, run: Run, find: Find) -> Found:
    """The answer under the activation with the largest held-out likelihood.

    A short search under each activation, then a full one under the best few; a certified exact answer ends
    the choice at once. ``find(problem, run, tries)`` is the search, at given or chosen width.
    """
    scouted: dict[str, Found] = {}
    for name in rivals(problem.form.intercept):
        rival = problem.with_activation(activations.get(name))
        scouted[name] = find(rival, run.at("activation", name, "scout"), _SCOUTS)
        run.report(f"activation {name}", 0, scouted[name].certificate.mean_square)
        if scouted[name].certificate.status == Status.EXACT:
            return scouted[name]
        if run.expired():
            break
    best = sorted(scouted, key=lambda name: scouted[name].certificate.mean_square)[:_FINALISTS]
    for name in best:
        # Once one activation explains all but noise, a full search under the others would only take time.
        if run.expired() or any(scouted[other].certificate.settled for other in best):
            break
        rival = problem.with_activation(activations.get(name))
        scouted[name] = find(rival, run.at("activation", name, "full"), None)
    outside = {name: _held_out(problem, scouted[name], run.at("held out", name)) for name in best}
    chosen = min(outside, key=lambda name: outside[name])
    found = scouted[chosen]
    own = problem.with_activation(activations.get(chosen)).with_width(found.certificate.network.n_hidden)
    if not found.certificate.finished:
        found = compared(found, own, options, run.at("chosen"))
    return _with_rivals(chosen, found, outside, problem)


def rivals(intercept: bool) -> list[str]:
    """Names to try: polynomials hide their units, and with an intercept sigmoid is tanh in other words."""
    named = [name for name in activations.names() if not activations.get(name).polynomial]
    return [name for name in named if not (intercept and name == "sigmoid")]


def _held_out(problem: Problem, found: Found, run: Run) -> float:
    """Mean squared residual, or mean deviance, on rows that a half-sample fit did not use."""
    certificate = found.certificate
    if certificate.exact:
        return certificate.mean_square
    own = problem.with_activation(certificate.network.activation).with_width(certificate.network.n_hidden)
    return fit_halves(certificate.network, own, run).held_out


def _with_rivals(chosen: str, found: Found, outside: dict[str, float], problem: Problem) -> Found:
    """The chosen answer held against the next best activation."""
    certificate = found.certificate
    if certificate.exact:
        return found
    others = [name for name in outside if name != chosen]
    rivals_ = [
        Alternative(Kind.CHOICE, name, problem.behind(outside[chosen], outside[name])) for name in others
    ]
    if not rivals_:
        check = not_compared(Kind.CHOICE, f"only {chosen} was tried: allow more time")
        return replace(found, certificate=certificate.held([check], []))
    ties = [one.label for one in rivals_ if one.close]
    if ties:
        certificate = certificate.remarked(f"held-out rows do not tell {chosen} from {' or '.join(ties)}")
    if chosen == "tanh":
        certificate = certificate.remarked(
            "sigmoid units are the same family as tanh: g(t) = (1 + tanh(t/2))/2"
        )
    return replace(found, certificate=certificate.held([falls_behind(rivals_, Kind.CHOICE)], rivals_))
