"""recover() on a source too large to hold: search on a sample of the rows, optimise and certify on all.

The first pass yields means, covariance, gaps and the sample. Then each step of Levenberg–Marquardt is one
pass; it starts at the answer of the sample and takes few. The certificate takes a few more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic

import numpy as np
from jaxtyping import Float

from onehidden import __version__, machine
from onehidden.certify.alternatives import with_comparisons_on_a_sample
from onehidden.certify.evaluate import certify
from onehidden.data.reduction import Summary, Survey, connected, group_keys, must_be_varied, reduce
from onehidden.data.source import Batch, Source
from onehidden.fit.coordinates import Coordinates, from_moments, is_constant, must_be_moderate
from onehidden.fit.normal_equations import normal_equations
from onehidden.fit.parametrisation import Parametrisation
from onehidden.fit.problem import Problem, optimise
from onehidden.fit.rounding import Rounding, rounding_of
from onehidden.fit.samples import A, RowSum
from onehidden.options import Options
from onehidden.recovery.record import Recovery
from onehidden.recovery.search import Found
from onehidden.recovery.solve import constant_fit, held_against_ridge, problem_of, record, solve
from onehidden.recovery.target import Target, checked_samples, must_be_compared
from onehidden.run import Run, open_journal


def recover_source(
    source: Source,
    options: Options,
    run: Run,
    client: object,
    checkpoint: object,
    sample: int | None = None,
    search: Callable[[Problem, Options, Run], Found] = solve,
) -> Recovery:
    """Recover a network from all rows of a source.

    ``sample`` is the number of rows to search in.
    """
    plain, key = options.to_dict(), options.checkpoint_key(source.n_inputs)
    run = replace(run, journal=open_journal(checkpoint, source.fingerprint, key, __version__))
    with connected(client, source) as cluster:
        outputs = source.n_outputs
        # 32 rows per parameter, at least 20 000 and at most 200 000.
        wanted = min(max(20_000, 32 * options.form(source.n_inputs, outputs).freedom), 200_000)
        wanted, seed = min(source.n_rows, sample or wanted), run.seed_of("rows of the sample")
        make = partial(Survey, source.n_inputs, wanted, source.n_rows, seed, outputs)
        summary = reduce(source, make, client=cluster, progress=_twentieths(run, "first pass")).result()
        must_be_varied(summary, source.feature_names)
        samples = checked_samples(summary.X, summary.y, summary.w, source.feature_names)
        if len(summary.keys):
            must_be_compared(len(summary.keys), summary.n, options.hidden)
            samples = replace(samples, groups=np.unique(summary.groups, return_inverse=True)[1])
        sampled = problem_of(samples, options)
        if sampled.whitening.constant:
            return replace(constant_fit(Target(samples), options), n_samples=summary.n)
        with machine.threads_for(sampled.with_width(options.hidden or 8).form.size):
            first = search(sampled, options, run.at("sample"))
        sampled = first.noise_known or sampled
        around = coordinates_of(summary, options.bias)
        if first.noise_known is not None:  # covariance of the noise between outputs
            around = replace(around, scale=sampled.whitening.scale)
        network = first.certificate.network
        rounding = rounding_of(summary.largest, np.sqrt(summary.variance))
        report = _twentieths(run, "pass over all rows")
        rows = StreamedRows(source, summary.n, summary.weight, rounding, cluster, report, summary.keys)
        form = options.form(around.rank, outputs)
        form = replace(form, activation=network.activation, k=network.n_hidden)
        problem = Problem(rows, form, around)
        network = optimise(network, problem, run.at("finish")).network
        own = certify(network, problem, run, options.errors)
    certificate = with_comparisons_on_a_sample(own, first.certificate, samples.n)
    run.report(f"certified {certificate.status}", 0, certificate.mean_square)
    more = held_against_ridge(certificate, sampled, options, run)
    return record(certificate, first.origin, rows, plain, run, **more)


def _twentieths(run: Run, stage: str) -> Callable[[int, int], None]:
    """Reports of a pass, at most twenty for any number of parts."""

    def report(done: int, parts: int) -> None:
        if parts > 1 and (done == parts or done * 20 // parts > (done - 1) * 20 // parts):
            run.report(stage, done, float("nan"))

    return report


def coordinates_of(summary: Summary, bias: bool) -> Coordinates:
    """Whitened coordinates of all rows; without biases, about the origin where that shows more directions."""
    must_be_moderate(np.array([summary.low, summary.high]), "X")
    must_be_moderate(np.array([summary.largest]), "y")
    scale = np.sqrt(summary.variance)
    scale = np.where(is_constant(scale, summary.largest), 0.0, scale)
    scale = np.diag(scale) if scale.ndim else float(scale)
    found = []
    for mean in (summary.mean, np.zeros_like(summary.mean)):
        off = summary.mean - mean
        second = summary.covariance + np.outer(off, off)
        spread = np.sqrt(np.diag(second))
        found.append(from_moments(mean, spread, second / np.outer(spread, spread), summary.level, scale))
        if bias or found[0].null.shape[1] == 0:
            return found[0]
    return found[1] if found[1].rank > found[0].rank else found[0]


class InCoordinates(Generic[A]):
    """An accumulator of batches that hands their rows in given coordinates to another one.

    It numbers groups by their place among ``keys`` instead of rows where these are given.
    """

    def __init__(
        self, make: Callable[[], A], coordinates: Coordinates, share: float, keys: np.ndarray | None
    ) -> None:
        self.inner, self._coordinates, self._share, self._keys = make(), coordinates, share, keys

    def update(self, batch: Batch) -> InCoordinates[A]:
        assert batch.y is not None
        weight = None if batch.weight is None else batch.weight * self._share
        Z, y = self._coordinates.inputs(batch.X), self._coordinates.target(batch.y)
        number = batch.row
        if self._keys is not None and batch.groups is not None:
            order = np.argsort(self._keys)
            number = order[np.searchsorted(self._keys, group_keys(batch.groups), sorter=order)]
        self.inner.update(Z, y, weight, number)
        return self

    def merge(self, other: InCoordinates[A]) -> InCoordinates[A]:
        self.inner.merge(other.inner)
        return self

    def result(self) -> A:
        return self.inner


@dataclass(frozen=True)
class StreamedRows:
    """All rows of a source."""

    source: Source = field(repr=False)
    n: int
    weight: float  # sum of the weights, which are brought to mean one
    rounding: Rounding
    client: object = field(default=None, repr=False)  # of Dask
    report: Callable[[int, int], None] | None = field(default=None, repr=False)  # (parts done, parts)
    keys: np.ndarray | None = field(default=None, repr=False)  # of the groups, by first rows
    streamed: bool = True

    @property
    def n_groups(self) -> int:
        return 0 if self.keys is None else len(self.keys)

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.feature_names

    def least_squares(self, form: Parametrisation, coordinates: Coordinates) -> StreamedLeastSquares:
        """The loss of a parametrisation in these coordinates."""
        return StreamedLeastSquares(form, self, coordinates)

    def fold(self, make: Callable[[], A], coordinates: Coordinates, by_group: bool = False) -> A:
        """An accumulator with all rows, read here or on the workers of a cluster."""
        keys = self.keys if by_group else None
        accumulator = partial(InCoordinates, make, coordinates, self.n / self.weight, keys)
        return reduce(self.source, accumulator, client=self.client, progress=self.report).result()


class StreamedLeastSquares:
    """The loss of a parametrisation over all rows of a source; ``passes`` counts the readings."""

    def __init__(self, form: Parametrisation, rows: StreamedRows, coordinates: Coordinates) -> None:
        self.form, self.n, self.passes = form, rows.n, 0
        self._rows, self._coordinates = rows, coordinates
        self._last: tuple[bytes, tuple[np.ndarray, np.ndarray, float]] | None = None

    def normal_equations(
        self, theta: Float[np.ndarray, " p"], rough: bool = False
    ) -> tuple[Float[np.ndarray, "p p"], Float[np.ndarray, " p"], float]:
        """J'J, J'r and r'r over all rows; never rough, since the sums of the last pass are kept."""
        key = np.asarray(theta, float).tobytes()
        if self._last is None or self._last[0] != key:
            self.passes += 1
            terms = partial(normal_equations, self.form, np.asarray(theta, float))
            hessian, gradient, loss = self._rows.fold(partial(RowSum, terms), self._coordinates).result()
            self._last = key, (hessian, gradient, float(loss))
        return self._last[1]

    def loss(self, theta: Float[np.ndarray, " p"]) -> float:
        """r'r; the normal equations of the same pass are kept for the step that accepts it."""
        return self.normal_equations(theta)[2]
