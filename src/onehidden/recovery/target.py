"""What y is: read once from what a caller gave, with its family, offset, trials and labels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float

from onehidden import data
from onehidden.data.arrays import as_real
from onehidden.families import Bernoulli, Family, Gaussian, Softmax
from onehidden.families import get as get_family
from onehidden.families.targets import check_target, classes_of
from onehidden.fit.samples import Samples, checked_samples
from onehidden.journal import fingerprint


@dataclass(frozen=True)
class Target:
    """The rows of a recovery and what their target is.

    Attributes
    ----------
    samples : inputs, numbers of the target, weights (trials among them).
    family : None for normal noise.
    offset : (n,) what is added to the network's output, or None.
    trials : (n,) of a binomial, or None.
    classes : the labels in order, where y holds labels; the first is what the others are held against.
    """

    samples: Samples
    family: Family | None = None
    offset: Float[np.ndarray, " n"] | None = field(default=None, repr=False)
    trials: Float[np.ndarray, " n"] | None = field(default=None, repr=False)
    classes: tuple[object, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Changes when the data change."""
        own = self.samples.fingerprint
        return own if self.offset is None else fingerprint(own, self.offset)


def read_target(
    X: object,
    y: object,
    sample_weight: object,
    family: str | Family | None,
    link: str | None,
    offset: object,
    trials: object,
) -> Target:
    """The target of a family; text without a family is taken for labels.

    Parameters
    ----------
    y : (n,) numbers, (n, q) of several outputs, or labels; of a binomial the number of successes.
    offset, trials : (n,) or None.
    """
    if isinstance(X, data.Table) and y is None:
        y = X.y
    counts = None if trials is None else _of_rows("trials", trials)
    shift = None if offset is None else _of_rows("offset", offset)
    labelled = family == Softmax.name or isinstance(family, Softmax) or (family is None and _is_text(y))
    chosen = Softmax() if labelled else get_family("gaussian" if family is None else family, link)
    if counts is not None and not chosen.counted:
        raise ValueError(f"trials are for the binomial family, not for {chosen.name}")
    classes: tuple[object, ...] = ()
    if labelled:
        if link not in (None, *Softmax.links):
            raise ValueError(f"classes have the link {Softmax.links[0]}, not {link!r}")
        labels, target = classes_of(y)
        two, classes = len(labels) == 2, tuple(labels.tolist())
        chosen = Bernoulli("logit") if two else Softmax("softmax", len(labels))
        samples = checked_samples(X, target[:, 0] if two else target, sample_weight)
    else:
        y = y if counts is None or y is None else _shares(y, counts)
        samples = checked_samples(X, y, sample_weight)
    counts = _of_weighted("trials", counts, sample_weight, samples.n)
    shift = _of_weighted("offset", shift, sample_weight, samples.n)
    if isinstance(chosen, Gaussian):
        return Target(_less(samples, shift), offset=shift)
    if not labelled:
        check_target(chosen, samples.y, counts)
    if counts is not None:
        samples = replace(samples, weight=counts if samples.weight is None else samples.weight * counts)
    return Target(replace(samples, noisy=True), chosen, shift, counts, classes)


def _is_text(y: object) -> bool:
    values = np.asarray(y) if y is not None else np.zeros(1)
    return values.dtype.kind in "US" or (
        values.dtype.kind == "O" and all(isinstance(v, str) for v in values.flat)
    )


def _of_rows(name: str, values: object) -> Float[np.ndarray, " n"]:
    found = np.asarray(as_real(values, name), float).reshape(-1)
    if not np.all(np.isfinite(found)):
        raise ValueError(f"{name} must hold finite numbers only")
    return found


def _shares(y: object, trials: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Successes over trials."""
    won = np.asarray(as_real(y, "y"), float).reshape(-1)
    if won.shape != trials.shape:
        raise ValueError(f"trials must have one entry for each of the {len(won)} rows, got {len(trials)}")
    wrong = (won < 0) | (won > trials) | (won != np.rint(won)) | (trials < 1)
    if np.any(wrong):
        row = int(np.argmax(wrong))
        raise ValueError(
            f"y must be a whole number of successes among its trials: row {row} has {won[row]:g} of "
            f"{trials[row]:g}"
        )
    return won / trials


def _of_weighted(
    name: str, own: Float[np.ndarray, " n"] | None, sample_weight: object, n: int
) -> Float[np.ndarray, " n"] | None:
    """What belongs to rows, of those whose weight is not zero."""
    if own is None:
        return None
    if sample_weight is not None:
        weight = np.asarray(sample_weight, float)
        own = own[weight > 0] if weight.shape == own.shape else own
    if len(own) != n:
        raise ValueError(f"{name} must have one entry for each of the {n} rows, got {len(own)}")
    return own


def _less(samples: Samples, offset: Float[np.ndarray, " n"] | None) -> Samples:
    """Beside normal noise an offset is a part of y that is known."""
    if offset is None:
        return samples
    return replace(samples, y=samples.y - offset.reshape(-1, *[1] * (samples.y.ndim - 1)))
