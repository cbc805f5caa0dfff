"""recover(): choose, start, optimise, certify."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING

import numpy.typing as npt

from onehidden import __version__, data, machine
from onehidden.activations import Activation
from onehidden.data.table import OneHot
from onehidden.families import Family
from onehidden.fit.parametrisation import Parametrisation
from onehidden.machine import in_double
from onehidden.options import Options, documented, hinting
from onehidden.recovery.record import Recovery
from onehidden.recovery.solve import constant_fit, held_against_ridge, problem_of, record, solve
from onehidden.recovery.sparse import with_chosen_inputs
from onehidden.recovery.streamed import recover_source
from onehidden.recovery.target import Given, Target, given, must_be_compared, read_target
from onehidden.run import Progress, Run, open_journal
from onehidden.starts.candidate import Start
from onehidden.structure import Structure

if TYPE_CHECKING:
    from onehidden_papers.laws.base import Score

_OWN = 0.8  # of the time for the answer itself; the rest is for holding its predictions against ridge's


@documented
@hinting
@in_double
def recover(
    X: npt.ArrayLike | Mapping[str, npt.ArrayLike] | PathLike[str] | data.Table | data.Source,
    y: npt.ArrayLike | str | Sequence[str] | None = None,
    hidden: int | None = None,
    *,
    activation: str | Activation = "relu",
    bias: bool = True,
    intercept: bool = True,
    score: str | Score = "auto",
    start: str | Start | Sequence[str | Start] = "auto",
    seed: int = 0,
    max_seconds: float | None = None,
    progress: bool | Progress = False,
    errors: str = "auto",
    family: str | Family | None = None,
    link: str | None = None,
    linear: bool = False,
    structure: str | Structure | Sequence[str | Structure] | None = None,
    random_intercept: bool = False,
    target: npt.ArrayLike | str | Sequence[str] | None = None,
    sample_weight: npt.ArrayLike | str | None = None,
    offset: npt.ArrayLike | str | None = None,
    trials: npt.ArrayLike | str | None = None,
    groups: npt.ArrayLike | str | None = None,
    nulls: str = "refuse",
    drop: Sequence[str] = (),
    one_hot: OneHot = False,
    client: object = None,
    checkpoint: object = None,
) -> Recovery:
    """Recover the units of y = c + <v, x> + sum_i w_i g(<a_i, x> + b_i) + noise from samples.

    Parameters
    ----------
    X : array_like of shape (n, d), data frame, path, Table or Source
        Inputs; a frame, a file or what ``data.open`` returns may hold the target and the columns that are
        named below, too. All its other columns are inputs.
    y : array_like of shape (n,) or (n, q), str or list of str, optional
        Target, or the name of its column; q outputs share one hidden layer; text is taken for labels.
    **options : Options
        One field of ``onehidden.options.Options`` each.
    target : array_like or str, optional
        Another name of ``y``.
    sample_weight : array_like of shape (n,) or str, optional
        How much each row counts: the noise of a row has variance sigma^2 / weight. Rows of weight zero are
        left out; only ratios matter.
    offset : array_like of shape (n,) or str, optional
        Added to the network's output: with a log link the logarithm of an exposure.
    trials : array_like of shape (n,) or str, optional
        Trials of a binomial target, which counts the successes.
    groups : array_like of shape (n,) or str, optional
        Labels of rows that may share noise, such as patients: errors, tests and folds are then by group.
    nulls, drop, one_hot : optional
        As in ``data.open``: what to do about rows with gaps, columns that are no features, and text columns.
    client : Client, Cluster or str, optional
        Dask client, cluster or scheduler address whose workers read a streamed ``Source``.
    checkpoint : path, optional
        Folder that remembers finished steps: called again after a kill, the answer is the same.

    Returns
    -------
    Recovery
        The network in canonical form with status, checks, standard errors and trace.

    Examples
    --------
    >>> import numpy as np
    >>> import onehidden as oh
    >>> truth = oh.OneHiddenNet([[3.0, 4.0], [1.0, -1.0]], [1.0, 2.0])
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> found = oh.recover(X, truth.predict(X), hidden=2, bias=False)
    >>> print(found.status)
    exact
    >>> bool(oh.match(found.network, truth).max_error < 1e-6)
    True
    """
    options = Options.from_arguments(locals())
    of_rows = {"sample_weight": sample_weight, "offset": offset, "trials": trials, "groups": groups}
    call = given(X, y, target, of_rows, {"nulls": nulls, "drop": drop, "one_hot": one_hot})
    found = _of_call(call, options, client, checkpoint)
    return replace(found, options=found.options | call[3])


def _of_call(call: Given, options: Options, client: object, checkpoint: object) -> Recovery:
    """The recovery from a stream or from rows in memory."""
    run = Run(options.seed, options.max_seconds, options.progress)
    X, y, known, _ = call
    if isinstance(X, data.Source):
        options.check_inputs(X.n_inputs)
        extras = X.selection.request.extras
        others = [name for name in ("offset", "trials") if known[name] is not None or name in extras]
        others += ["a family"] if options.family not in (None, "gaussian") else []
        others += [name for name in ("random_intercept", "structure") if getattr(options, name)]
        if others:
            raise ValueError(
                f"a streamed source has no {' and no '.join(others)}: read the table whole, with "
                "data.open(…, stream=False)"
            )
        for name, option in (("y", "target"), ("sample_weight", "weight"), ("groups", "groups")):
            if (known | {"y": y})[name] is not None or (name == "y" and X.target_name is None):
                raise ValueError(
                    f"a source holds its {option}: open it with {option}=NAME and leave {name} out"
                )
        return recover_source(X, options, run, client, checkpoint)
    if client is not None:
        raise ValueError("a client reads a streamed source: open the data with data.open(…, stream=True)")
    target = read_target(X, y, family=options.family, link=options.link, **known)
    return recovered(target, options, run, checkpoint)


def recovered(target: Target, options: Options, run: Run, checkpoint: object = None) -> Recovery:
    """The recovery of a target that was read."""
    target = (target.with_random_intercepts() if options.random_intercept else target).in_own_order()
    asked, n_all = options, target.samples.n
    if options.known is not None and options.known.to_choose is not None:
        target, options = with_chosen_inputs(target, options, run.within(_OWN / 2).at("inputs"))
    samples, d = target.samples, target.samples.X.shape[1]
    options.check_inputs(d)
    if samples.n_groups:
        must_be_compared(samples.n_groups, len(samples), options.hidden)
    problem = problem_of(samples, options, target.family, target.offset, target.trials)
    if problem.whitening.constant:
        return constant_fit(target, options)
    form, n = problem.form, problem.n_values
    if options.hidden is not None and n <= form.freedom:
        most, s = most_units(form, n), "s" * (form.k > 1)
        fewer = f"ask for at most {most} unit{'s' * (most > 1)} or " if most else ""
        raise ValueError(
            f"the {form.freedom} free parameters of {form.k} unit{s} of {form.d} input{'s' * (form.d > 1)} "
            f"need more than {n} samples: {fewer}bring more samples"
        )
    run = replace(
        run, journal=open_journal(checkpoint, target.fingerprint, options.checkpoint_key(d), __version__)
    )
    units = 8 if options.hidden is None else options.hidden  # of a width that is to be found: a few
    with machine.threads_for(problem.with_width(units).form.size):
        found = solve(problem, options, run.within(_OWN))
        problem, certificate = found.noise_known or problem, found.certificate
        more = held_against_ridge(certificate, problem, options, run) | {"classes": target.classes}
        more["n_choosing"] = n_all - target.samples.n
        return record(certificate, found.origin, problem.rows, asked.to_dict(), run, **more)


def most_units(form: Parametrisation, n: int) -> int:
    """Units whose parameters are fewer than the samples."""
    shared = replace(form, k=0).freedom
    return max(0, (n - 1 - shared) // (replace(form, k=1).freedom - shared))
