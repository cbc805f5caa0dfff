"""Other minima and other sides of the units: networks of the same form that may fit as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onehidden import activations
from onehidden.certify.certificate import Certificate
from onehidden.certify.compare import Alternative, Kind, agreement, falls_behind, not_compared
from onehidden.certify.local_fit import local_fit
from onehidden.certify.other_activations import NEAR, affordable, in_words_of
from onehidden.certify.questions import certify
from onehidden.certify.row_losses import RowLosses
from onehidden.certify.shared_units import differing_units, named
from onehidden.certify.turns import other_sides, unseen_turns
from onehidden.certify.units import Cause
from onehidden.fit.polish import ROUGHLY, Polished, polish
from onehidden.fit.problem import Problem
from onehidden.network import OneHiddenNet
from onehidden.run import Run

_TURNS = 8  # other orientations finished and compared


def with_sides(
    certificate: Certificate, problem: Problem, run: Run, met: Sequence[Polished], errors: str
) -> Certificate:
    """Held against other turns of the units, each finished, and other minima; the best is the answer."""
    own = Polished(certificate.network, certificate.mean_square)
    turned = other_sides(problem.at(certificate.network), certificate.network, _TURNS, run)
    others = [(Kind.MINIMUM, one) for one in [*met, *_by_detours(certificate.network, problem, run)]]
    for number, net in enumerate(turned):
        if run.expired():
            return certificate
        others.append((Kind.SIDES, polish(net, problem, run.at("turn", number))))
    best = min((own, *(one for _, one in others)), key=lambda one: one.mean_square)
    if best is not own:
        # Starts that came to the old answer say nothing of another one.
        same = [one for one in met if not _differ(best, one, problem)]
        kept = (agreement(1 + len(same)),) if _differ(best, own, problem) else certificate.compared
        certificate = replace(certify(best.network, problem, run, errors), compared=kept)
    found: list[Alternative] = []
    rows = RowLosses.of(problem, best.network)
    for kind, other in sorted([(Kind.MINIMUM, own), *others], key=lambda one: one[1].mean_square):
        # Kinked units have many small minima next to each other: with the same units they are one answer.
        units = differing_units(certificate.network, other.network, problem, best.mean_square)
        if not units or any(_alike(one, other, problem, best.mean_square) for one in found):
            continue
        if run.expired():
            return certificate
        gap = problem.behind(best.mean_square, other.mean_square)
        where = "on their other side" if kind is Kind.SIDES else "elsewhere"
        away = rows.against(RowLosses.of(problem, other.network)).deviations
        found.append(Alternative(kind, f"{named(units)} {where}", gap, other.network, units, away))
    reflection = problem.activation.reflection
    sided = reflection is not None and reflection.degree > 0
    turns: list[tuple[tuple[int, ...], OneHiddenNet]] | None = []
    if reflection is not None and reflection.degree > 1:  # turns of degree one were finished above
        local = local_fit(certificate.network, problem.at(certificate.network))
        turns = unseen_turns(local, local.covariance(True))
    for units, net in turns or []:
        if differing_units(certificate.network, net, problem, best.mean_square):
            label = f"{named(units)} on their other side"
            found.append(Alternative(Kind.SIDES, label, 0.0, net, units, 0.0))
    checks = [falls_behind(found, Kind.MINIMUM)]
    if sided and turns is None:
        checks.append(not_compared(Kind.SIDES, "too many parameters for all turns of powers of ReLU"))
    elif sided:
        checks.append(falls_behind(found, Kind.SIDES))
    reasons = {}
    for one in found:
        if one.close:
            why = f"another network with {one.label} fits as well ({one.behind:.2g} of n log(loss) behind)"
            reasons |= {i: (Cause.RIVAL, why) for i in one.units}
    return certificate.held(checks, found).with_open(reasons)


def _by_detours(network: OneHiddenNet, problem: Problem, run: Run) -> list[Polished]:
    """Minima reached by way of near relatives of the activation: a smooth loss has fewer minima.

    Measured where two starts had agreed on a wrong minimum (ReLU, ten rows a parameter, noise of half the
    signal): the detour by softplus or GELU found the better one in three of four.
    """
    smooth = [name for name in NEAR.get(problem.activation.name, ()) if not activations.get(name).kinked][:1]
    found = []
    for name in smooth if affordable(problem) else ():
        if run.expired():
            break
        relative = problem.with_activation(activations.get(name))
        away = polish(
            in_words_of(network, relative), relative, run.at("detour", name), enough=ROUGHLY
        ).network
        found.append(polish(in_words_of(away, problem), problem, run.at("back", name)))
    return found


def _differ(best: Polished, other: Polished, problem: Problem) -> bool:
    return bool(differing_units(best.network, other.network, problem, best.mean_square))


def _alike(one: Alternative, other: Polished, problem: Problem, mean_square: float) -> bool:
    """Whether an alternative has the units of another network."""
    assert one.network is not None
    return not differing_units(one.network, other.network, problem, mean_square)
