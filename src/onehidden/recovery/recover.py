"""recover(): choose, start, polish, certify."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy.typing as npt

from onehidden import __version__, data, threads
from onehidden.activations import Activation
from onehidden.families import Family
from onehidden.fit.form import Form
from onehidden.journal import open_journal
from onehidden.moments.score_protocol import Score
from onehidden.precision import in_double
from onehidden.recovery.options import check_inputs, checked_options
from onehidden.recovery.outcome import recorded
from onehidden.recovery.record import Recovery
from onehidden.recovery.solve import problem_of, solve
from onehidden.recovery.streamed import recover_source
from onehidden.recovery.target import read_target
from onehidden.run import Progress, Run
from onehidden.starts.start import Start

_OWN = 0.8  # of the time for the answer itself; the rest is for holding its predictions against ridge's


@in_double
def recover(
    X: npt.ArrayLike | data.Table | data.Source,
    y: npt.ArrayLike | None = None,
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
    sample_weight: npt.ArrayLike | None = None,
    errors: str = "auto",
    family: str | Family | None = None,
    link: str | None = None,
    linear: bool = False,
    offset: npt.ArrayLike | None = None,
    trials: npt.ArrayLike | None = None,
    client: object = None,
    checkpoint: object = None,
) -> Recovery:
    """Recover the units of y = c + <v, x> + sum_i w_i g(<a_i, x> + b_i) + noise from samples.

    Parameters
    ----------
    X : (n, d) array or table; or a ``data.Table`` or streamed ``data.Source`` that holds the target too.
    y : (n,) target; (n, q) for q outputs over one hidden layer; text for labels.
    hidden : number of units k; chosen from the data when None.
    activation : g, one of ``activations.names()``, or "auto" to choose it by held-out likelihood.
    bias : whether the hidden biases b_i are free (else zero).
    intercept : whether c is free (else zero).
    score : the input model behind the score moments: "auto" takes whitened inputs for Gaussian unless
        their third and fourth moments say otherwise, and then chooses by ``scores.select``; "gaussian"; or
        a law, or an estimated score, with ``score(X, order, subspace)``.
    start : "auto" races all; or one of "random", "linear", "tensor", "localised", "landscape",
        "reflections", "wide", "thinned", "population"; or one of ``oh.starts``, such as
        ``Random(restarts=50)``; or a list of them.
    seed : same seed, same answer; with another number of threads to its last digits.
    max_seconds : time budget; the best answer so far is returned when it runs out.
    progress : True prints lines to stderr; a callable hears each ``TraceRecord``.
    sample_weight : (n,) how much each row counts: the noise of a row has variance sigma^2 / weight. Rows of
        weight zero are left out; only ratios matter.
    errors : "classical" standard errors, for noise as large everywhere; "robust" ones (sandwich); "auto"
        takes the robust where the residuals show unequal spread.
    family : what y is, given the network's output: "gaussian" (the default), "poisson", "bernoulli",
        "binomial", "negative_binomial", "gamma", or "softmax" for labels.
    link : from the mean of y to the network's output; the family's usual one when None.
    linear : whether a linear part <v, x> beside the units is free. The side of a unit such as ReLU is then a
        convention (relu(t) = t + relu(-t)): its largest weight is positive.
    offset : (n,) added to the network's output: with a log link the logarithm of an exposure.
    trials : (n,) of a binomial, whose y counts the successes.
    client : for a ``data.Source``: a Dask client, cluster or scheduler address whose workers read it.
    checkpoint : a folder that remembers finished steps: called again after a kill, the answer is the same.

    Returns
    -------
    Recovery : the network in canonical form with status, checks, standard errors and trace.
    """
    options = checked_options(
        hidden=hidden, activation=activation, bias=bias, intercept=intercept, score=score, start=start,
        seed=seed, max_seconds=max_seconds, errors=errors, family=family, link=link, linear=linear,
        progress=progress,
    )  # fmt: skip
    run = Run(options.seed, options.max_seconds, options.progress)
    if isinstance(X, data.Source):
        check_inputs(options, X.n_inputs)
        if offset is not None or trials is not None or options.family not in (None, "gaussian"):
            raise ValueError(
                "a streamed source is fitted with normal noise: read the table whole (stream=False) for a "
                "family, an offset or trials"
            )
        return recover_source(X, y, sample_weight, options, run, client, checkpoint)
    if client is not None:
        raise ValueError("a client reads a streamed source: open the data with data.open(…, stream=True)")
    target = read_target(X, y, sample_weight, options.family, options.link, offset, trials)
    samples, d = target.samples, target.samples.X.shape[1]
    check_inputs(options, d)
    problem = problem_of(samples, options, target.family, target.offset, target.trials)
    if options.hidden is not None:
        _enough_samples(problem.form, problem.numbers)
    run = replace(run, journal=open_journal(checkpoint, target.fingerprint, options.pins(d), __version__))
    units = 8 if options.hidden is None else options.hidden  # of a width that is to be found: a few
    with threads.fit_for(problem.with_width(units).form.size):
        found = solve(problem, options, run.within(_OWN))
        return recorded(found, found.noise_known or problem, target, options, run)


def _enough_samples(form: Form, n: int) -> None:
    if n <= form.freedom:
        shared = replace(form, k=0).freedom
        most = (n - 1 - shared) // (replace(form, k=1).freedom - shared)
        cure = f"ask for at most {most} units or bring more samples" if most > 0 else "bring more samples"
        raise ValueError(
            f"{form.k} units of {form.d} inputs have {form.freedom} free parameters, but there are only {n} "
            f"samples: {cure}"
        )
