"""Bands around predictions, tests of inputs, average effects: what a covariance of the parameters tells.

All by the delta method on the network's output eta: var(eta) = J C J'. Where y has a family a band of the
mean is carried through the link; a band of a new observation takes quantiles of the family's law, averaged
over the normal law of eta.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.families.distributions import distribution
from onehidden.fit.form import Form, written_out
from onehidden.precision import in_double

if TYPE_CHECKING:
    from onehidden.recovery.record import Recovery

_NODES = 15  # of the quadrature over eta
_ROWS = 2048  # rows of the Jacobian held at a time


@dataclass(frozen=True)
class InputTest:
    """For each input, whether any unit or the linear part uses it.

    Attributes
    ----------
    statistic, freedom : (d,) w' C^-1 w of the weights of that input, and how many they are.
    p_value : (d,) of so large a statistic when all of them are zero.
    """

    statistic: Float[np.ndarray, " d"]
    freedom: Float[np.ndarray, " d"]
    p_value: Float[np.ndarray, " d"]


@dataclass(frozen=True)
class MarginalEffects:
    """Average derivative of the mean of y in each input.

    Attributes
    ----------
    effect, error : (d,) or (d, q), and their standard errors, for these rows.
    """

    effect: Float[np.ndarray, "d ..."]
    error: Float[np.ndarray, "d ..."]


def form_of(record: Recovery) -> Form:
    """The free parameters of an answer, as its covariance orders them."""
    net, error = record.network, record.standard_errors
    outputs = net.n_outputs if net.output.ndim == 2 else None
    asked = record.options
    return Form(
        net.activation, net.n_inputs, net.n_hidden, bool(asked.get("bias", True)),
        bool(asked.get("intercept", True)), error.linear is not None, outputs=outputs,
    )  # fmt: skip


def parameters_of(record: Recovery) -> Float[np.ndarray, " p"]:
    """The free parameters of an answer as one vector."""
    net = record.network
    return form_of(record).pack(net.weights, net.output, net.bias, net.linear, net.intercept)


def mean_of(
    record: Recovery, X: Float[np.ndarray, "m d"], offset: npt.ArrayLike | None
) -> Float[np.ndarray, "m ..."]:
    """The mean of y by the network; of labels the probabilities of the classes after the first."""
    eta = record.network.predict(X) + added(record, X, offset)
    return eta if record.family is None else record.family.mean(eta)


@in_double
def output_errors(record: Recovery, X: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m ..."]:
    """Standard errors of the network's output at the rows of X."""
    if record.covariance is None:
        raise ValueError(
            "the covariance of the parameters was not kept: there are too many of them, or none is known"
        )
    form, theta = form_of(record), parameters_of(record)
    factor = _root(record.covariance)
    found = []
    for at in range(0, len(X), _ROWS):
        part = X[at : at + _ROWS]
        target = np.zeros((len(part), *form.tail))
        J = written_out(form, theta, part, target, np.ones(len(part)))[1]
        found.append(np.sqrt(np.sum((J @ factor) ** 2, axis=1)))
    return np.concatenate(found).reshape(len(X), *form.tail)


def bands(
    record: Recovery, X: npt.ArrayLike, level: float, of: str, offset: npt.ArrayLike | None
) -> tuple[Float[np.ndarray, "m ..."], Float[np.ndarray, "m ..."]]:
    """Lower and upper ends, see ``Recovery.predict_interval``."""
    from scipy.special import stdtrit

    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
    if of not in ("mean", "observation"):
        raise ValueError(f'of must be "mean" or "observation", got {of!r}')
    X = np.asarray(X, float)
    eta = record.network.predict(X) + added(record, X, offset)
    error, reach = output_errors(record, X), float(stdtrit(record.residual_freedom, 0.5 + level / 2))
    if record.family is None:
        if of == "observation":
            error = np.sqrt(error**2 + _noise(record))
        shift = record.predict(X, offset) - eta  # what held-out rows spoke for
        return eta + shift - reach * error, eta + shift + reach * error
    if record.family.coupled:
        raise ValueError("of labels there are probabilities, but no band for each: see predict")
    if record.family.counted and of == "observation":
        raise ValueError("a new share of successes hangs on its trials: ask for the band of the mean")
    if of == "mean":
        ends = [record.family.mean(eta + sign * reach * error) for sign in (-1, 1)]
        return np.minimum(*ends), np.maximum(*ends)
    return _observed(record, eta, error, level)


def _noise(record: Recovery) -> Float[np.ndarray, " q"] | float:
    if record.noise_covariance is not None:
        return np.diag(record.noise_covariance)
    return record.noise_variance


def _observed(
    record: Recovery, eta: np.ndarray, error: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of the family's law averaged over eta, by bisection on the mixture of its distributions."""
    assert record.family is not None
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    weights = weights / weights.sum()
    phi = record.noise_variance if record.family.scaled else 1.0
    laws = [distribution(record.family, eta + node * error, phi) for node in nodes]

    def below(y: np.ndarray) -> np.ndarray:
        return np.sum([w * law.cdf(y) for w, law in zip(weights, laws, strict=True)], axis=0)

    ends = []
    for p in (0.5 - level / 2, 0.5 + level / 2):
        each = np.array([law.ppf(p) for law in laws])
        low, high = each.min(axis=0) - 1, each.max(axis=0)
        for _ in range(60):
            middle = np.floor((low + high) / 2) if record.family.discrete else (low + high) / 2
            enough = below(middle) >= p
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        ends.append(high)
    return ends[0], ends[1]


def input_test(record: Recovery) -> InputTest:
    """Wald tests that an input matters to no unit, nor to the linear part."""
    from scipy.special import fdtrc

    form, covariance = form_of(record), record.covariance
    if covariance is None:
        raise ValueError("the covariance of the parameters was not kept: there are too many of them")
    theta, places = parameters_of(record), form.places()
    d, found = form.d, []
    for j in range(d):
        own = np.arange(form.k) * d + j
        if places[3] is not None:
            own = np.append(own, places[3].start + j * form.q + np.arange(form.q))
        value, vector = np.linalg.eigh(covariance[np.ix_(own, own)])
        seen = value > 1e-12 * max(float(value[-1]), np.finfo(float).tiny)
        along = vector[:, seen].T @ theta[own]
        statistic, freedom = float(np.sum(along**2 / value[seen])), int(np.sum(seen))
        p_value = float(fdtrc(freedom, record.residual_freedom, statistic / max(freedom, 1)))
        found.append((statistic, float(freedom), p_value))
    return InputTest(*(np.array(column) for column in zip(*found, strict=True)))


@in_double
def marginal_effects(record: Recovery, X: npt.ArrayLike, offset: npt.ArrayLike | None) -> MarginalEffects:
    """The mean of m'(eta) d eta / d x over the rows of X, and its error by the delta method."""
    if record.covariance is None:
        raise ValueError("the covariance of the parameters was not kept: there are too many of them")
    if record.family is not None and record.family.coupled:
        raise ValueError("of labels the effect differs from class to class: see network for the log-odds")
    X = np.asarray(X, float)
    form, theta = form_of(record), parameters_of(record)
    eta = record.network.predict(X) + added(record, X, offset)
    step = 1e-4
    slope, bend = np.ones_like(eta), np.zeros_like(eta)
    if record.family is not None:
        slope = record.family.slope(eta)
        bend = (record.family.slope(eta + step) - record.family.slope(eta - step)) / (2 * step)
    gradients, factor = _slopes(form, jnp.asarray(theta), X), _root(record.covariance)
    shape = (form.d, *form.tail)
    effect = np.einsum("nq,ndq->dq", slope.reshape(len(X), -1), gradients) / len(X)
    # d effect / d theta = mean of m' d^2 eta / (dx dtheta) + m'' d eta / dx d eta / dtheta
    moved = _effect_jacobian(form, jnp.asarray(theta), X, slope.reshape(len(X), -1))
    target = np.zeros((len(X), *form.tail))
    J = written_out(form, theta, X, target, np.ones(len(X)))[1]
    J = J.reshape(len(X), form.q, -1)
    moved = moved + np.einsum("nq,ndq,nqp->dqp", bend.reshape(len(X), -1), gradients, J) / len(X)
    error = np.sqrt(np.sum((moved @ factor) ** 2, axis=2))
    return MarginalEffects(effect.reshape(shape), error.reshape(shape))


def _slopes(form: Form, theta: jax.Array, X: np.ndarray) -> Float[np.ndarray, "n d q"]:
    """d eta / d x at every row."""
    weights, output, bias, beta, _ = form.unpack(theta)
    slopes = form.slope(jnp.asarray(X) @ weights.T + bias)
    found = jnp.einsum("nk,kd,kq->ndq", slopes, weights, output.reshape(form.k, form.q))
    return np.asarray(found + beta.reshape(form.d, form.q))


def _effect_jacobian(form: Form, theta: jax.Array, X: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """(d, q, p) derivative in the parameters of the mean of slope times d eta / d x, slope held.

    At kinks the slope of a unit jumps: the part of its derivative that sits there is left out.
    """

    def mean(theta: jax.Array) -> jax.Array:
        weights, output, bias, beta, _ = form.unpack(theta)
        slopes = form.slope(jnp.asarray(X) @ weights.T + bias)
        units = jnp.einsum("nk,nq->kq", slopes, jnp.asarray(slope)) * output.reshape(form.k, form.q)
        return (weights.T @ units + beta.reshape(form.d, form.q) * jnp.sum(slope, axis=0)) / len(X)

    return np.asarray(jax.jacrev(mean)(theta))


def added(record: Recovery, X: np.ndarray, offset: npt.ArrayLike | None) -> np.ndarray | float:
    """The offset in the shape of the network's output."""
    if offset is None:
        return 0.0
    found = np.asarray(offset, float).reshape(-1)
    if len(found) != len(X) or not np.all(np.isfinite(found)):
        raise ValueError(f"offset must be {len(X)} finite numbers, one a row")
    return found.reshape(-1, *[1] * (record.network.output.ndim - 1))


def _root(covariance: Float[np.ndarray, "p p"]) -> Float[np.ndarray, "p p"]:
    """F with F F' = C, small negative eigenvalues of rounding left out."""
    value, vector = np.linalg.eigh(covariance)
    return vector * np.sqrt(np.maximum(value, 0))
