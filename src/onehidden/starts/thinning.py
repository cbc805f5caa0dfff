"""Thinning: a very wide student, on all rows if time allows, whose units are weeded out stage by stage.

Weight decay on rows and outputs is, for g of degree one, a penalty on the sum of |w_i| |a_i|: a lasso over
all directions (for others it is like one). Its minimiser under a slowly falling penalty holds many true
units, and others beside them even where the data determine the network. Dividing each unit's penalty by its
own strength, as in the reweighted lasso, takes the others out; where some stay, the strongest begin again
among fresh ones with a fifth of the penalty. Exact recovery needs fewer samples a parameter than any one
student does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from onehidden.fit.form import Form
from onehidden.fit.problem import Problem
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, search_form
from onehidden.starts.wide import Wide, merged_units, random_student, refined_best, train

_NEAR = 0.9  # cosine above which a unit is one that was kept
_MOST = 10  # times k: units that are pruned at the end, whatever the clock left undone

# Weights (M, d), biases, amplitudes (M,) or (M, q), strongest first.
Planes = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Thinned:
    """A very wide student, thinned out stage by stage.

    Attributes
    ----------
    width, steps : units of the first student (None: 32 times those sought), and its Adam steps.
    stage_steps : of each later one.
    decay : of the first student.
    even, fall : units kept at each stage with one decay for all, in multiples of k, and the factor of the
        decay from one to the next.
    weighted, hold : the same for the stages whose decay differs from unit to unit.
    floor : strength, in that of the k strongest, above which a unit's decay begins to fall.
    rounds, free : at most so many rounds; share of the decay that units kept from the last one bear.
    batch : rows a step (None: all).
    first : number of the first round: another one, other students.
    """

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
    first: int = 0

    @property
    def name(self) -> str:
        return "thinned"

    def work(self, problem: Problem) -> float:
        """Floating-point operations of one round: two a product, three products a step."""
        width, n = self.units(problem), problem.n
        units = self.steps * width + self.stage_steps * problem.k * sum(self.even + self.weighted)
        return 6.0 * min(self.batch or n, n) * problem.d * units

    def units(self, problem: Problem) -> int:
        """Of the first student."""
        return 4 * max(8 * problem.k, 64) if self.width is None else self.width

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        """Train wide, thin out, keep k, refine; again with what was kept while that leaves too many units.

        With noise some are always left: two rounds that end at one loss, to half a unit of n log(loss), end
        it. The best of the rounds is the one candidate.
        """
        kept: Planes | None = None
        best = None
        for turn in range(self.rounds):
            here = run.at("round", turn)
            form, theta = _round(problem, self, kept, here, turn)
            found = refined_best(form, theta, problem, here, "thinning")
            again = best is not None and problem.numbers * abs(found.loss - best.loss) <= 0.5 * best.loss
            best = found if best is None or not best.loss <= found.loss else best
            planes = merged_units(form, theta)
            done = problem.rows.rounding.found(best.loss) or len(planes[0]) <= problem.k
            if again or done or run.expired():
                break
            weights, bias, amplitude = planes
            kept = weights[: problem.k], bias[: problem.k], amplitude[: problem.k]
        assert best is not None
        yield best


def _round(
    problem: Problem, settings: Thinned, kept: Planes | None, run: Run, turn: int
) -> tuple[Form, np.ndarray]:
    """The thinned student of one round: its form and parameters."""
    width, k = settings.units(problem), problem.k
    form = search_form(problem, width)
    student = Wide(width, settings.steps, settings.batch, 1e-2, settings.decay)
    theta = random_student(form, run.rng("thinned student", settings.first + turn))
    share = np.ones(form.k)
    if kept is not None:
        theta, share[: len(kept[0])] = _replaced(form, theta, kept), settings.free
    theta = _trained(problem, form, student, theta, share, run.at("stage", 0))
    later = replace(student, steps=settings.stage_steps, rate=student.rate / 2)
    for stage, multiple in enumerate(settings.even + settings.weighted):
        planes, weighted = merged_units(form, theta), stage >= len(settings.even)
        if run.expired() or not len(planes[0]) or (weighted and len(planes[0]) <= k):
            break
        wide = search_form(problem, multiple * k)
        theta, strength = _narrower(form, theta, wide, planes)
        if weighted:
            share = _shares(strength, k, settings.floor)
        else:
            share = _shares_of_kept(wide, theta, kept, settings.free)
        decay = later.decay * (settings.hold if weighted else settings.fall)
        form, later = wide, replace(later, width=wide.k, decay=decay)
        theta = _trained(problem, form, later, theta, share, run.at("stage", stage + 1))
    most = search_form(problem, _MOST * k)
    if form.k > most.k:
        form, theta = most, _narrower(form, theta, most, merged_units(form, theta))[0]
    return form, theta


def _trained(
    problem: Problem, form: Form, settings: Wide, begin: np.ndarray, share: np.ndarray, run: Run
) -> Float[np.ndarray, " p"]:
    return train(form, settings, problem, run, f"student of {form.k} units", begin, share)


def _narrower(form: Form, theta: np.ndarray, wide: Form, planes: Planes) -> tuple[np.ndarray, np.ndarray]:
    """The student of form ``wide`` with the strongest merged units, empty ones after them; and strengths."""
    weights, output, bias = _balanced(form, planes)
    weights, output, bias = weights[: wide.k], output[: wide.k], bias[: wide.k]
    missing = wide.k - len(weights)
    weights = np.pad(weights, ((0, missing), (0, 0)))
    output = np.pad(output, ((0, missing), *[(0, 0)] * (output.ndim - 1)))
    bias = np.pad(bias, (0, missing))
    _, _, _, beta, intercept = form.unpack(theta)
    strength = _strength(planes[2][: wide.k])
    return wide.pack(weights, output, bias, beta, intercept), np.pad(strength, (0, missing))


def _replaced(form: Form, theta: np.ndarray, kept: Planes) -> np.ndarray:
    """The student with its first units replaced by those that were kept."""
    parts = form.unpack(theta)
    weights, output, bias = (part.copy() for part in parts[:3])
    count = len(kept[0])
    weights[:count], output[:count], bias[:count] = _balanced(form, kept)
    return form.pack(weights, output, bias, *parts[3:])


def _strength(amplitude: np.ndarray) -> np.ndarray:
    """(M,) the lengths of amplitudes (M,) or (M, q)."""
    return np.linalg.norm(amplitude.reshape(len(amplitude), -1), axis=1)


def _balanced(form: Form, planes: Planes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, outputs, biases of merged units, a homogeneous one shared out so that its decay is least."""
    weights, bias, amplitude = planes
    norm = np.linalg.norm(weights, axis=1)
    degree, length = form.activation.homogeneity, norm
    if degree is not None:  # the least of |a|^2 + b^2 + w^2 with w |a|^degree and b / |a| held
        strength = _strength(amplitude)
        length = (np.sqrt(degree) * strength * norm / np.hypot(norm, bias)) ** (1 / (degree + 1))
    output = (amplitude.T / length ** (degree or 1)).T
    return weights * (length / norm)[:, None], output, bias * length / norm


def _shares(strength: np.ndarray, k: int, floor: float) -> np.ndarray:
    """How much of the decay each unit bears: one at the mean strength of the k strongest, more below."""
    top = float(np.mean(np.sort(strength)[::-1][:k]))
    return (1 + floor) * top / (strength + floor * top)


def _shares_of_kept(form: Form, theta: np.ndarray, kept: Planes | None, free: float) -> np.ndarray:
    """One for every unit but the nearest to each kept one."""
    share = np.ones(form.k)
    if kept is not None:
        weights, _, bias, _, _ = form.unpack(theta)
        cosine = _directions(kept[0], kept[1]) @ _directions(weights, bias).T
        cosine = np.abs(cosine) if form.symmetrised or form.activation.sign_free else cosine
        nearest = np.argmax(cosine, axis=1)
        share[nearest[np.max(cosine, axis=1) > _NEAR]] = free
    return share


def _directions(weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    planes = np.column_stack([weights, bias])
    return planes / np.maximum(np.linalg.norm(planes, axis=1, keepdims=True), 1e-300)
