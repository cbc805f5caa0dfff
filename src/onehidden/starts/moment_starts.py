"""Starts that read score moments: tensor decomposition, moments of clusters, designed landscapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from onehidden.fit.input_model import InputModel
from onehidden.fit.problem import Problem
from onehidden.laws import standard_normal
from onehidden.moments import score_moments
from onehidden.moments.components import LARGEST_SIDE
from onehidden.moments.score_protocol import Score
from onehidden.refused import Refused
from onehidden.run import Run
from onehidden.starts.candidate import Candidate, completed_loss, refine_in_two, search_form
from onehidden.starts.joint_outputs import joint_directions, joint_span
from onehidden.starts.landscape import landscape_start
from onehidden.starts.localised import DIRECT, LocalisedTensors, localised_tensors
from onehidden.starts.magnitudes import fit_units
from onehidden.starts.span import span_of_units
from onehidden.starts.start import descent_work
from onehidden.starts.tensor import tensor_starts

_LARGEST_FOURTH = 64  # coordinates beyond which T_4 is not formed
_SPREAD = 0.7  # of its length by which a row of a copy is moved
_UNIT_ENTRIES = 400_000  # rows times units looked at for lengths and biases

Units = tuple[Float[np.ndarray, "k d"], Float[np.ndarray, " k"]]


def input_model(problem: Problem) -> InputModel:
    """The law of the inputs, which these starts cannot do without."""
    assert problem.inputs is not None
    return problem.inputs


def law_of(problem: Problem) -> Score:
    """The score that moments are taken with."""
    return input_model(problem).score() or standard_normal(problem.d)


def span(problem: Problem) -> Float[np.ndarray, "d k"] | None:
    """The span of the units where the second moment shows it, else None."""
    if problem.form.outputs is not None:
        found, signal = joint_span(problem, law_of(problem))
        input_model(problem).hear_signal(2, signal)
        return found
    moments = score_moments(problem.Z, problem.y, law_of(problem), orders=(1, 2), weight=problem.weight)
    return span_of_units(input_model(problem).hear(moments), problem.k)


def _one_output(problem: Problem, name: str) -> None:
    if problem.form.outputs is not None:
        raise Refused(f"the {name} start reads one output: with several use start='tensor' or start='auto'")


def _moment_work(problem: Problem) -> float:
    """Operations of T_4 in the span of the units."""
    return 2.0 * problem.n * min(problem.k, problem.d) ** 4


@dataclass(frozen=True)
class Tensor:
    """Directions from the joint decomposition of the moments that carry signal, then perturbed copies.

    Attributes
    ----------
    copies : candidates at most; all but the first are perturbed copies of it.
    """

    copies: int = 4

    @property
    def name(self) -> str:
        return "tensor"

    def work(self, problem: Problem) -> float:
        return _moment_work(problem) + self.copies * descent_work(problem)

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        if problem.form.outputs is not None:
            yield from self._of_outputs(problem, run)
            return
        nets = tensor_starts(
            problem.Z, problem.y, problem.k, count=self.copies, activation=problem.activation,
            score=input_model(problem).score(), bias=problem.bias, seed=run.seed, weight=problem.weight,
        )  # fmt: skip
        form = search_form(problem)
        for i, net in enumerate(nets):
            if i and run.expired():
                return
            yield refine_in_two(problem, form, net.weights, net.bias, run.at(i), "tensor")

    def _of_outputs(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        """Directions behind the moments of all outputs, then perturbed copies."""
        form, rng = search_form(problem), run.rng("copies of the joint start")
        directions = joint_directions(problem, law_of(problem), run.seed)
        for i in range(self.copies):
            if i and run.expired():
                return
            move = _SPREAD * rng.standard_normal(directions.shape) / np.sqrt(problem.d) if i else 0.0
            yield refine_in_two(problem, form, directions + move, np.zeros(problem.k), run.at(i), "tensor")


@dataclass(frozen=True)
class Landscape:
    """Directions by descent on the designed objective of the moments of order 2 and 4."""

    attempts: int = 3

    @property
    def name(self) -> str:
        return "landscape"

    def work(self, problem: Problem) -> float:
        return _moment_work(problem) + self.attempts * descent_work(problem)

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        _one_output(problem, self.name)
        basis = span(problem)
        if basis is None and problem.d > _LARGEST_FOURTH:
            raise Refused(
                f"the landscape start forms T_4 in at most {_LARGEST_FOURTH} coordinates, got {problem.d} "
                "and no clear span of the units: use start='tensor' or start='wide'"
            )
        moments = input_model(problem).hear(
            score_moments(
                problem.Z, problem.y, law_of(problem), orders=(2, 4), subspace=basis, weight=problem.weight
            )
        )
        form = search_form(problem)
        for attempt in range(self.attempts):
            if attempt and run.expired():
                return
            found = landscape_start(moments, problem.k, seed=run.seed_of("landscape", attempt))
            rows = found.directions if basis is None else found.directions @ basis.T
            yield refine_in_two(problem, form, rows, np.zeros(problem.k), run.at(attempt), "landscape")


@dataclass(frozen=True)
class Localised:
    """Directions from the moments of each cluster of the inputs, decomposed jointly.

    Attributes
    ----------
    clusters : whether the inputs must form clusters that most rows clearly belong to; else any fitted mixture
        will do.
    copies : perturbed copies of the best directions at the end.
    """

    clusters: bool = True
    copies: int = 0

    @property
    def name(self) -> str:
        return "localised"

    def work(self, problem: Problem) -> float:
        return _moment_work(problem) + (4 + self.copies) * descent_work(problem)

    def propose(self, problem: Problem, run: Run) -> Iterator[Candidate]:
        _one_output(problem, self.name)
        most = min(problem.d, LARGEST_SIDE)
        if problem.k > most:
            raise Refused(f"the localised start finds at most {most} units, got {problem.k}")
        law = input_model(problem).clusters(self.clusters)
        if law is None:
            raise Refused(
                "the inputs form one Gaussian component or no clear clusters: the localised start needs "
                "several, use start='tensor'"
            )
        tensors = localised_tensors(
            problem.Z, problem.y, problem.k, law=law, weight=problem.weight, seed=run.seed
        )
        for (_, m), z in tensors.signals.items():
            input_model(problem).hear_signal(m, z)
        form = search_form(problem)
        for i, (weights, bias) in enumerate(_ranked_units(problem, tensors, self.copies, run)):
            if i and run.expired():
                return
            yield refine_in_two(problem, form, weights, bias, run.at(i), "localised")


def _ranked_units(problem: Problem, tensors: LocalisedTensors, copies: int, run: Run) -> Iterator[Units]:
    """Rows (k, d) and biases (k,) to refine: those that fit the samples best first, then perturbed copies.

    A free decomposition of many unknowns takes as long as a descent: it is left for last.
    """
    low = tensors.below(4)
    tries: list[tuple[LocalisedTensors, str]] = [(tensors, "orthogonal"), (tensors, "whitened")]
    if low is not tensors:
        tries.append((low, "orthogonal"))
    small = tensors.unknowns <= DIRECT
    if small:
        tries.append((tensors, "any"))
    found = []
    for some, rows in tries:
        if found and run.expired():
            break
        units = _decomposed(problem, some, rows, run)
        if units is not None:
            found.append((completed_loss(problem, search_form(problem), *units), len(found), units))
    found.sort(key=lambda one: one[:2])
    for _, _, units in found:
        yield units
    if not small and (units := _decomposed(problem, tensors, "any", run)) is not None:
        yield units
    if not found:
        return
    # Near the least number of samples one descent may stall where another from nearby does not.
    rng, (weights, bias) = run.rng("copies of the localised start"), found[0][2]
    length = np.linalg.norm(weights, axis=1, keepdims=True)
    for _ in range(copies):
        yield weights + _SPREAD * length * rng.standard_normal(weights.shape) / np.sqrt(problem.d), bias


def _decomposed(problem: Problem, tensors: LocalisedTensors, rows: str, run: Run) -> Units | None:
    """Rows of fitting length and orientation, and biases; None where the tensors lack what this needs."""
    try:
        directions = tensors.start(rows, run.seed).directions
        form = search_form(problem)
        if form.symmetrised and problem.activation.homogeneity is not None and not problem.bias:
            return directions, np.zeros(problem.k)
        count = min(problem.n, max(1000, _UNIT_ENTRIES // problem.k))
        some = problem.take(run.rng("rows of lengths and biases").permutation(problem.n)[:count])
        net = fit_units(some.Z, some.y, directions, problem.activation, bias=problem.bias, weight=some.weight)
    except (Refused, np.linalg.LinAlgError):
        return None
    return net.weights, net.bias
