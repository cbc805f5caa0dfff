"""Iterative pruning: a very wide network, trained on all rows if time allows, pruned stage by stage.

Weight decay on rows and outputs is, for g of degree one, a penalty on the sum of |w_i| |a_i|: a lasso over
all directions (for others it is like one). Its minimiser under a slowly falling penalty holds many true
units, and others with them even where the data determine the network. Dividing each unit's penalty by its
own strength, as in the reweighted lasso, removes the others; where some stay, the strongest begin again
among new ones with a fifth of the penalty. Exact recovery needs fewer samples per parameter than one training
does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from onehidden.fit.parametrisation import Parametrisation
from onehidden.fit.problem import Problem
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, search_form
from onehidden.starts.wide import Wide, merged_units, pruned, random_network, train

# Weights (M, d), biases, amplitudes (M,) or (M, q), strongest first.
Units = tuple[np.ndarray, np.ndarray, np.ndarray]
Train = Callable[..., np.ndarray]


@dataclass(frozen=True)
class Thinned:
    """An overparameterised network with iterative pruning.

    Parameters
    ----------
    width : int or None
        Units of the first network; None for 32 times those sought, at least 256.
    steps, stage_steps : int
        Adam steps of the first network and of each later one.
    decay : float
        Weight decay of the first network.
    even : tuple of int
        Units kept at each stage with one decay for all, in multiples of k.
    fall : float
        Factor of the decay from one of these stages to the next.
    weighted : tuple of int
        Units kept at the stages whose decay differs from unit to unit.
    hold : float
        Factor of the decay from one of those to the next.
    floor : float
        Strength, in that of the k strongest, below which a unit's decay stops to rise.
    rounds : int
        Rounds at most.
    free : float
        Share of the decay of units kept from the last round.
    batch : int or None
        Rows a step; None for all.
    """

    name: ClassVar[str] = "thinned"
    width: int | None = None
    steps: int = 8000
    stage_steps: int = 4000
    decay: float = 2e-3
    even: tuple[int, ...] = (20, 20, 10, 10)
    fall: float = 0.6
    weighted: tuple[int, ...] = (10, 10, 5, 5, 5)
    hold: float = 0.9
    floor: float = 0.15
    rounds: int = 4
    free: float = 0.2
    batch: int | None = None

    def work(self, problem: Problem) -> float:
        """Operations of one round: two per product, three products per step."""
        width, n = self.units(problem), problem.n
        units = self.steps * width + self.stage_steps * problem.k * sum(self.even + self.weighted)
        return 6.0 * min(self.batch or n, n) * problem.d * units

    def units(self, problem: Problem) -> int:
        """Number of units of the first network."""
        return 4 * max(8 * problem.k, 64) if self.width is None else self.width

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        """Yield the best of all rounds: train, prune, keep k, refine; again while too many units are left.

        With noise some are always left: two rounds that end at one loss, to half a unit of n log(loss), end
        it.
        """
        yield iteratively_pruned(problem, self, run)


def iteratively_pruned(problem: Problem, settings: Thinned, run: Run, train: Train = train) -> Candidate:
    """Return the best candidate of all rounds; ``train`` trains the network of each stage."""
    kept: Units | None = None
    best = None
    for number in range(settings.rounds):
        here = run.at("round", number)
        form, theta = _round(problem, settings, kept, here, number, train)
        found = pruned(form, theta, problem, here, "thinned")
        again = best is not None and problem.n_values * abs(found.loss - best.loss) <= 0.5 * best.loss
        best = found if best is None or not best.loss <= found.loss else best
        units = merged_units(form, theta)
        done = problem.rows.rounding.found(best.loss) or len(units[0]) <= problem.k
        if again or done or run.expired():
            break
        weights, bias, amplitude = units
        kept = weights[: problem.k], bias[: problem.k], amplitude[: problem.k]
    assert best is not None
    return best


def _round(
    problem: Problem, settings: Thinned, kept: Units | None, run: Run, number: int, train: Train
) -> tuple[Parametrisation, np.ndarray]:
    """Return the pruned network of one round: its form and parameters."""
    width, k = settings.units(problem), problem.k
    form = search_form(problem, width)
    training = Wide(width, settings.steps, settings.batch, 1e-2, settings.decay)
    theta = random_network(form, run.rng("thinned network", number))
    share = np.ones(form.k)
    if kept is not None:
        theta, share[: len(kept[0])] = _replaced(form, theta, kept), settings.free
    theta = train(form, training, problem, run.at("stage", 0), f"network of {form.k} units", theta, share)
    later = replace(training, steps=settings.stage_steps, rate=training.rate / 2)
    for stage, multiple in enumerate(settings.even + settings.weighted):
        units, weighted = merged_units(form, theta), stage >= len(settings.even)
        if run.expired() or not len(units[0]) or (weighted and len(units[0]) <= k):
            break
        narrow = search_form(problem, multiple * k)
        theta, strength = _narrower(form, theta, narrow, units)
        if weighted:
            share = _shares(strength, k, settings.floor)
        else:
            share = _shares_of_kept(narrow, theta, kept, settings.free)
        decay = later.decay * (settings.hold if weighted else settings.fall)
        form, later = narrow, replace(later, width=narrow.k, decay=decay)
        here = run.at("stage", stage + 1)
        theta = train(form, later, problem, here, f"network of {form.k} units", theta, share)
    most = search_form(problem, 10 * k)  # units to prune from at the end, whatever the clock left undone
    if form.k > most.k:
        form, theta = most, _narrower(form, theta, most, merged_units(form, theta))[0]
    return form, theta


def _narrower(
    form: Parametrisation, theta: np.ndarray, narrow: Parametrisation, units: Units
) -> tuple[np.ndarray, np.ndarray]:
    """Return the network of form ``narrow`` with the strongest merged units; and their strengths."""
    weights, output, bias = (part[: narrow.k] for part in _balanced(form, units))
    missing = narrow.k - len(weights)
    weights = np.pad(weights, ((0, missing), (0, 0)))
    output = np.pad(output, ((0, missing), *[(0, 0)] * (output.ndim - 1)))
    _, _, _, beta, intercept = form.unpack(theta)
    strength = np.pad(_strength(units[2][: narrow.k]), (0, missing))
    return narrow.pack(weights, output, np.pad(bias, (0, missing)), beta, intercept), strength


def _replaced(form: Parametrisation, theta: np.ndarray, kept: Units) -> np.ndarray:
    """Return the network with its first units replaced by those that were kept."""
    parts = form.unpack(theta)
    weights, output, bias = (part.copy() for part in parts[:3])
    count = len(kept[0])
    weights[:count], output[:count], bias[:count] = _balanced(form, kept)
    return form.pack(weights, output, bias, *parts[3:])


def _strength(amplitude: np.ndarray) -> np.ndarray:
    """(M,) the lengths of amplitudes (M,) or (M, q)."""
    return np.linalg.norm(amplitude.reshape(len(amplitude), -1), axis=1)


def _balanced(form: Parametrisation, units: Units) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, outputs, biases of merged units; a homogeneous one is scaled so that its decay is least."""
    weights, bias, amplitude = units
    norm = np.linalg.norm(weights, axis=1)
    degree, length = form.activation.homogeneity, norm
    if degree is not None:  # the least of |a|^2 + b^2 + w^2 with w |a|^degree and b / |a| held
        strength = _strength(amplitude)
        length = (np.sqrt(degree) * strength * norm / np.hypot(norm, bias)) ** (1 / (degree + 1))
    output = (amplitude.T / length ** (degree or 1)).T
    return weights * (length / norm)[:, None], output, bias * length / norm


def _shares(strength: np.ndarray, k: int, floor: float) -> np.ndarray:
    """Factor of the decay of each unit: one at the mean strength of the k strongest, more below."""
    top = float(np.mean(np.sort(strength)[::-1][:k]))
    return (1 + floor) * top / (strength + floor * top)


def _shares_of_kept(form: Parametrisation, theta: np.ndarray, kept: Units | None, free: float) -> np.ndarray:
    """One for every unit but the nearest to each kept one, where their cosine is above .9."""
    share = np.ones(form.k)
    if kept is not None:
        weights, _, bias, _, _ = form.unpack(theta)
        planes = [np.column_stack([kept[0], kept[1]]), np.column_stack([weights, bias])]
        old, new = (one / np.maximum(np.linalg.norm(one, axis=1, keepdims=True), 1e-300) for one in planes)
        cosine = old @ new.T
        cosine = np.abs(cosine) if form.symmetrised or form.activation.sign_free else cosine
        share[np.argmax(cosine, axis=1)[np.max(cosine, axis=1) > 0.9]] = free
    return share
