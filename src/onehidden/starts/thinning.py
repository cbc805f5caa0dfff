"""Thinning: a very wide student, on all rows if time allows, whose units are weeded out stage by stage.

Weight decay on rows and outputs is, for g of degree one, a penalty on the sum of |w_i| |a_i|: a lasso over
all directions (for others it is like one). Its minimiser under a slowly falling penalty holds many true
units, and others beside them even where the data determine the network. Dividing each unit's penalty by its
own strength, as in the reweighted lasso, takes the others out; where some stay, the strongest begin again
among fresh ones with a fifth of the penalty. Exact recovery needs fewer samples a parameter than any one
student does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from onehidden.objectives.residuals import Form
from onehidden.starts.candidate import Candidate, Task, search_form
from onehidden.starts.wide import WideAndPrune, merged_units, random_student, refined_best, train

_NEAR = 0.9  # cosine above which a unit is one that was kept
_MOST = 10  # times k: units that are pruned at the end, whatever the clock left undone
_DONE = 1e-12  # mean squared residual, of var(y), after which there is nothing to search for

Planes = tuple[np.ndarray, np.ndarray, np.ndarray]  # weights (M, d), biases, amplitudes, strongest first


@dataclass(frozen=True)
class Thinning:
    """Settings of the stages.

    Attributes
    ----------
    width, steps : units of the first student, and its Adam steps.
    stage_steps : of each later one.
    decay : of the first student.
    even, fall : units kept at each stage with one decay for all, in multiples of k, and the factor of the
        decay from one to the next.
    weighted, hold : the same for the stages whose decay differs from unit to unit.
    floor : strength, in that of the k strongest, above which a unit's decay begins to fall.
    rounds, free : at most so many rounds; share of the decay that units kept from the last one bear.
    batch : rows a step (None: all).
    """

    width: int
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

    def work(self, n: int, d: int, k: int) -> float:
        """Floating-point operations of one round: two a product, three products a step."""
        units = self.steps * self.width + self.stage_steps * k * sum(self.even + self.weighted)
        return 6.0 * min(self.batch or n, n) * d * units


def thinned_start(task: Task, settings: Thinning) -> Candidate:
    """Train wide, thin out, keep k, refine; again with what was kept while that leaves too many units.

    With noise some are always left: two rounds that end at one loss, to half a unit of n log(loss), end it.
    """
    kept: Planes | None = None
    best = None
    for turn in range(settings.rounds):
        form, theta = _round(task, settings, kept, turn)
        found = refined_best(form, theta, task, "thinning")
        again = best is not None and len(task.y) * abs(found.loss - best.loss) <= 0.5 * best.loss
        best = found if best is None or not best.loss <= found.loss else best
        planes = merged_units(form, theta)
        if again or best.loss < _DONE or len(planes[0]) <= task.k or task.stop():
            break
        weights, bias, amplitude = planes
        kept = weights[: task.k], bias[: task.k], amplitude[: task.k]
    assert best is not None
    return best


def _round(task: Task, settings: Thinning, kept: Planes | None, turn: int) -> tuple[Form, np.ndarray]:
    """The thinned student of one round: its form and parameters."""
    form = search_form(task.activation, task.d, settings.width, task.bias)
    student = WideAndPrune(settings.width, settings.steps, settings.batch, 1e-2, settings.decay)
    theta = random_student(form, np.random.default_rng([task.seed, turn]))
    share = np.ones(form.k)
    if kept is not None:
        theta, share[: len(kept[0])] = _replaced(form, theta, kept), settings.free
    theta = _trained(task, form, student, theta, share)
    later = replace(student, steps=settings.stage_steps, rate=student.rate / 2)
    for stage, multiple in enumerate(settings.even + settings.weighted):
        planes, weighted = merged_units(form, theta), stage >= len(settings.even)
        if task.stop() or not len(planes[0]) or (weighted and len(planes[0]) <= task.k):
            break
        wide = search_form(task.activation, task.d, multiple * task.k, task.bias)
        theta, strength = _narrower(form, theta, wide, planes)
        if weighted:
            share = _shares(strength, task.k, settings.floor)
        else:
            share = _shares_of_kept(wide, theta, kept, settings.free)
        decay = later.decay * (settings.hold if weighted else settings.fall)
        form, later = wide, replace(later, width=wide.k, decay=decay)
        theta = _trained(task, form, later, theta, share)
    most = search_form(task.activation, task.d, _MOST * task.k, task.bias)
    if form.k > most.k:
        form, theta = most, _narrower(form, theta, most, merged_units(form, theta))[0]
    return form, theta


def _trained(
    task: Task, form: Form, settings: WideAndPrune, begin: np.ndarray, share: np.ndarray
) -> np.ndarray:
    return train(
        form, settings, task.Z, task.y, task.seed, task.stop, task.reporter(f"student of {form.k} units"),
        task.weight, task.memo, begin, share,
    )  # fmt: skip


def _narrower(form: Form, theta: np.ndarray, wide: Form, planes: Planes) -> tuple[np.ndarray, np.ndarray]:
    """The student of form ``wide`` with the strongest merged units, empty ones after them; and strengths."""
    weights, output, bias = _balanced(form, planes)
    weights, output, bias = weights[: wide.k], output[: wide.k], bias[: wide.k]
    missing = wide.k - len(weights)
    weights = np.pad(weights, ((0, missing), (0, 0)))
    output, bias = np.pad(output, (0, missing)), np.pad(bias, (0, missing))
    _, _, _, beta, intercept = form.unpack(theta)
    strength = np.abs(planes[2][: wide.k])
    return wide.pack(weights, output, bias, beta, intercept), np.pad(strength, (0, missing))


def _replaced(form: Form, theta: np.ndarray, kept: Planes) -> np.ndarray:
    """The student with its first units replaced by those that were kept."""
    parts = form.unpack(theta)
    weights, output, bias = (part.copy() for part in parts[:3])
    count = len(kept[0])
    weights[:count], output[:count], bias[:count] = _balanced(form, kept)
    return form.pack(weights, output, bias, *parts[3:])


def _balanced(form: Form, planes: Planes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, outputs, biases of merged units, a homogeneous one shared out so that its decay is least."""
    weights, bias, amplitude = planes
    norm = np.linalg.norm(weights, axis=1)
    degree, length = form.activation.homogeneity, norm
    if degree is not None:  # the least of |a|^2 + b^2 + w^2 with w |a|^degree and b / |a| held
        length = (np.sqrt(degree) * np.abs(amplitude) * norm / np.hypot(norm, bias)) ** (1 / (degree + 1))
    return weights * (length / norm)[:, None], amplitude / length ** (degree or 1), bias * length / norm


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
