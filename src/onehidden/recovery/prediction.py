"""What a recovery predicts: the network, ridge regression or a mixture, with intervals and tests.

Intervals are those of the delta method: the network's output eta has variance J C J', with C the covariance
of the parameters. Where y has a family, the interval of the mean is carried through the link; the interval
of a new observation takes quantiles of the family's distribution, averaged over the normal distribution of
eta.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden.fit.parametrisation import Parametrisation, written_out
from onehidden.machine import in_double
from onehidden.network import OneHiddenNet
from onehidden.recovery.line import Affine
from onehidden.recovery.target import inputs_of

if TYPE_CHECKING:
    from onehidden.recovery.record import Recovery

Ends = tuple[Float[np.ndarray, "m ..."], Float[np.ndarray, "m ..."]]


@dataclass(frozen=True)
class Prediction:
    """The linear predictor at x is l(x) + share * clip(N(x) - l(x)), N the network.

    l is ridge regression, or a family's generalised linear model with a ridge penalty.

    Attributes
    ----------
    share : float
        The share of what the network adds to the line: 1 for the network alone, 0 for the line alone.
    line : Affine
        The penalised linear model on the same rows.
    low, high : float
        Bounds of N - l, those on the rows fitted; infinite where they are not needed.
    r_squared, linear_r_squared : float
        Share of var(y), or of a family's deviance, that these predictions and the penalised linear model
        explain on rows left out of the fit; NaN where none were left out.
    message : str
        The above in words.
    """

    share: float
    line: Affine = field(repr=False)
    low: Any = -np.inf  # a number, of several outputs (q,)
    high: Any = np.inf
    r_squared: float = float("nan")
    linear_r_squared: float = float("nan")
    message: str = "predictions are those of the network"

    @property
    def alone(self) -> bool:
        """Whether predictions are those of the network as it stands."""
        return self.share == 1 and bool(np.all(np.isinf([self.low, self.high])))

    def predict(self, network: OneHiddenNet, X: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
        """The predictions, with the units of this network."""
        if self.alone:
            return network.predict(X)
        line = self.line(X)
        if self.share == 0:
            return line
        return line + self.share * np.clip(network.predict(X) - line, self.low, self.high)


@dataclass(frozen=True)
class InputTest:
    """Tests, one per input, that no unit and no linear part uses it.

    Attributes
    ----------
    statistic : ndarray of shape (d,)
        w' C^-1 w of the weights of that input.
    freedom : ndarray of shape (d,)
        Their number.
    p_value : ndarray of shape (d,)
        The probability of so large a statistic when all of them are zero.
    """

    statistic: Float[np.ndarray, " d"]
    freedom: Float[np.ndarray, " d"]
    p_value: Float[np.ndarray, " d"]


@dataclass(frozen=True)
class Derived:
    """A quantity computed from a network, with its error by the delta method.

    Attributes
    ----------
    estimate, error, lower, upper : ndarray
        The quantity, its standard error and the ends of its interval, in its own shape.
    level : float
        Coverage of the interval.
    """

    estimate: Float[np.ndarray, ...]
    error: Float[np.ndarray, ...]
    lower: Float[np.ndarray, ...]
    upper: Float[np.ndarray, ...]
    level: float


def fitted_parameters(
    record: Recovery,
) -> tuple[Parametrisation, Float[np.ndarray, " p"], Float[np.ndarray, "p p"]]:
    """The free parameters as the covariance orders them, and F with F F' = C but for rounding."""
    if record.covariance is None:
        raise ValueError(
            "the covariance of the parameters was not kept: there are too many of them, or none is known"
        )
    net, linear = record.network, record.standard_errors.linear is not None
    outputs = net.n_outputs if net.output.ndim == 2 else None
    bias, intercept = (bool(record.options.get(name, True)) for name in ("bias", "intercept"))
    form = Parametrisation(
        net.activation, net.n_inputs, net.n_hidden, bias, intercept, linear, outputs=outputs
    )
    value, vector = np.linalg.eigh(record.covariance)
    theta = form.pack(net.weights, net.output, net.bias, net.linear, net.intercept)
    return form, theta, vector * np.sqrt(np.maximum(value, 0))


def derive(
    self: Recovery,
    quantity: Callable[[OneHiddenNet], npt.ArrayLike],
    level: float = 0.95,
    X: npt.ArrayLike | None = None,
    y: npt.ArrayLike | None = None,
    **of_rows: Any,
) -> Derived:
    """Compute a quantity of the network with a standard error and an interval.

    The error is that of the delta method. The interval is symmetric about the estimate, or with the rows
    of the fit that of the profile likelihood, which is better where rows are few and parameters enter far
    from linearly: a dose of half effect near the end of the doses may have no upper bound.

    Parameters
    ----------
    quantity : callable
        Takes a ``OneHiddenNet`` and returns a number or an array: a dose of half effect, a slope at a
        point, a difference of predictions.
    level : float
        Coverage of the interval.
    X, y : array_like, optional
        The rows of the fit, for an interval by profile likelihood.
    **of_rows
        ``sample_weight``, ``offset``, ``trials`` and ``groups`` as arrays, if ``recover`` had them.

    Returns
    -------
    Derived
        Estimate, error and the ends of the interval.

    Examples
    --------
    >>> import numpy as np
    >>> import onehidden as oh
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1))
    >>> y = 3 * np.tanh(2 * X[:, 0] - 1) + 0.1 * rng.normal(size=200)
    >>> found = oh.recover(X, y, hidden=1, activation="tanh")
    >>> middle = found.derive(lambda net: -net.bias[0] / net.weights[0, 0])
    >>> bool(middle.lower < 0.5 < middle.upper)
    True
    """
    quantile_of(level, 1.0)  # refuses a level before the quantity is computed
    form, theta, factor = fitted_parameters(self)

    def at(theta: Float[np.ndarray, " p"]) -> Float[np.ndarray, " m"]:
        weights, output, bias, linear, intercept = form.unpack(theta)
        net = OneHiddenNet(weights, output, bias, intercept, self.network.activation, linear)
        found = np.asarray(quantity(net))
        if found.dtype.kind not in "biuf":
            raise ValueError(f"the quantity must be a number or an array of them, got {found.dtype} values")
        found = found.astype(float)
        if not np.all(np.isfinite(found)):
            raise ValueError("the quantity is not a finite number at the fit, or next to it")
        return found

    estimate, errors = at(theta), np.linalg.norm(factor, axis=1)
    # Central differences, each parameter moved by a thousandth of its error.
    slopes = []
    for step in np.diag(1e-3 * errors):
        both = at(theta + step) - at(theta - step)
        slopes.append(both / (2 * step.sum()) if step.any() else np.zeros_like(both))
    each = np.array(slopes)
    error = np.linalg.norm(np.tensordot(factor, each, axes=(0, 0)), axis=0)
    freedom = self.mean_freedom(each.reshape(len(theta), -1).T).reshape(error.shape)
    reach = quantile_of(level, freedom) * error
    wald = Derived(estimate, error, estimate - reach, estimate + reach, level)
    if X is None and y is None:
        return wald
    from onehidden.recovery.profile import profiled

    return profiled(self, quantity, wald, X, y, of_rows)


def quantile_of(level: float, freedom: Any) -> Any:
    """The quantile of Student's t for an interval of this level."""
    from scipy.special import stdtrit

    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level}")
    return stdtrit(freedom, 0.5 + level / 2)


def linear_predictor(
    record: Recovery, X: Float[np.ndarray, "m d"], offset: npt.ArrayLike | None = None
) -> np.ndarray:
    """What ``predict`` carries through the link."""
    if record.prediction is None or X.ndim != 2 or X.shape[1] != record.network.n_inputs:
        eta = record.network.predict(X)
    else:
        eta = record.prediction.predict(record.network, X)
    if offset is None:
        return eta
    found = np.asarray(offset, float).reshape(-1)
    if len(found) != len(X) or not np.all(np.isfinite(found)):
        raise ValueError(f"offset must be {len(X)} finite numbers, one per row")
    return eta + found.reshape(-1, *[1] * (eta.ndim - 1))


@in_double
def output_errors(record: Recovery, X: Float[np.ndarray, "m d"], batch: int = 2048) -> Ends:
    """Standard errors of the network's output at rows and their freedom, by batches of the Jacobian.

    They are infinite where rounding of the covariance, whose eigenvalues may be negative, hides them.
    """
    form, theta, factor = fitted_parameters(record)
    lost, found = max(-float(np.linalg.eigvalsh(np.asarray(record.covariance))[0]), 0.0), []
    for at in range(0, len(X), batch):
        part = X[at : at + batch]
        target, root = np.zeros((len(part), *form.tail)), np.ones(len(part))
        J = written_out(form, theta, part, target, root)[1]
        variance = np.sum((J @ factor) ** 2, axis=1)
        known = variance >= 100 * lost * np.sum(J**2, axis=1)
        found.append((np.sqrt(np.where(known, variance, np.inf)), record.mean_freedom(J)))
    error, freedom = (np.concatenate(one).reshape(len(X), *form.tail) for one in zip(*found, strict=True))
    return error, freedom


def predict_interval(
    self: Recovery,
    X: npt.ArrayLike,
    level: float = 0.95,
    of: str = "mean",
    offset: npt.ArrayLike | None = None,
) -> Ends:
    """Intervals of the mean of y, or of a new observation, at each row.

    Where the number of units was left open they also cover, on average over rows, a unit that would not
    have been detected (``undetected``).

    Parameters
    ----------
    X : array_like of shape (m, d)
        Rows.
    level : float
        Coverage of each interval.
    of : {"mean", "observation"}
        "observation" adds the noise.
    offset : array_like of shape (m,), optional
        Added to the network's output.

    Returns
    -------
    lower, upper : ndarray of shape (m,) or (m, q)
        The ends of the intervals.
    """
    quantile_of(level, 1.0)
    if of not in ("mean", "observation"):
        raise ValueError(f'of must be "mean" or "observation", got {of!r}')
    X, family = inputs_of(self, X), self.family
    eta = linear_predictor(self, X, offset)
    error, freedom = output_errors(self, X)
    reach = quantile_of(level, freedom)
    if self.options.get("hidden") is None:
        # What a missed unit adds differs from row to row, as another error of its standard deviation would.
        error = np.hypot(error, np.nan_to_num(self.undetected))
    if family is None:
        if of == "observation":
            several = self.noise_covariance
            error = np.sqrt(error**2 + (self.noise_variance if several is None else np.diag(several)))
        return eta - reach * error, eta + reach * error
    if family.coupled:
        raise ValueError("of labels there are probabilities, but no band for each: see predict")
    if family.counted and of == "observation":
        raise ValueError("a new share of successes hangs on its trials: ask for the band of the mean")
    if of == "mean":
        ends = [family.mean(eta + sign * reach * error) for sign in (-1, 1)]
        return np.minimum(*ends), np.maximum(*ends)
    known = np.isfinite(error)
    lower, upper = _observation_interval(self, eta, np.where(known, error, 0.0), level)
    return np.where(known, lower, 0.0), np.where(known, upper, np.inf)


def _observation_interval(record: Recovery, eta: np.ndarray, error: np.ndarray, level: float) -> Ends:
    """Quantiles of the family's distribution averaged over eta, by bisection on the mixture."""
    family = record.family
    assert family is not None
    nodes, weights = np.polynomial.hermite_e.hermegauss(15)
    phi = record.noise_variance if family.scaled else 1.0
    laws = [family.distribution(eta + node * error, phi) for node in nodes]

    def below(y: np.ndarray) -> np.ndarray:
        return np.average([law.cdf(y) for law in laws], axis=0, weights=weights)

    ends = []
    for p in (0.5 - level / 2, 0.5 + level / 2):
        each = np.array([law.ppf(p) for law in laws])
        low, high = each.min(axis=0) - 1, each.max(axis=0)
        for _ in range(60):
            middle = np.floor((low + high) / 2) if family.discrete else (low + high) / 2
            enough = below(middle) >= p
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        ends.append(high)
    return ends[0], ends[1]


def input_test(self: Recovery) -> InputTest:
    """Wald tests, one per input, that no unit and no linear part uses it.

    Returns
    -------
    InputTest
        Statistics and p-values of the inputs.
    """
    from scipy.special import fdtrc

    form, theta, factor = fitted_parameters(self)
    linear = form.places()[3]
    found = []
    for j in range(form.d):
        own = np.arange(form.k) * form.d + j
        if linear is not None:
            own = np.append(own, linear.start + j * form.q + np.arange(form.q))
        value, vector = np.linalg.eigh(factor[own] @ factor[own].T)
        known = value > 1e-12 * max(float(value[-1]), np.finfo(float).tiny)
        along = vector[:, known].T @ theta[own]
        statistic, freedom = float(np.sum(along**2 / value[known])), float(np.sum(known))
        below = float(np.min(self.mean_freedom(np.eye(len(theta))[own])))
        p_value = float(fdtrc(freedom, below, statistic / max(freedom, 1)))
        found.append((statistic, freedom, p_value))
    return InputTest(*(np.array(column) for column in zip(*found, strict=True)))


def mean_slopes(self: Recovery) -> Derived | None:
    """Slopes v + ½ Σ w_i a_i with standard errors, which no choice of orientations of the units changes.

    None without a free linear part and a covariance, or where the orientation of units is no convention.
    """
    part = self.network.activation.orientation_part
    if self.standard_errors.linear is None or self.covariance is None or len(part) != 2:
        return None
    return derive(self, lambda net: net.linear + part[1] * net.weights.T @ net.output)
