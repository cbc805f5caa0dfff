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
    classes : the labels in order, where y holds labels; the first is what the others are held against.
    """

    samples: Samples
    family: Family | None = None
    offset: Float[np.ndarray, " n"] | None = field(default=None, repr=False)
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
    labelled = family == Softmax.name or isinstance(family, Softmax) or (family is None and _is_text(y))
    if labelled:
        if link not in (None, *Softmax.links):
            raise ValueError(f"classes have the link {Softmax.links[0]}, not {link!r}")
        labels, target = classes_of(y)
        two = len(labels) == 2
        chosen = Bernoulli("logit") if two else Softmax("softmax", len(labels))
        samples = checked_samples(X, target[:, 0] if two else target, sample_weight)
        found = Target(samples, chosen, classes=tuple(labels.tolist()))
    else:
        chosen = get_family("gaussian" if family is None else family, link)
        counts = None if trials is None else _of_rows("trials", trials)
        if counts is not None and y is not None:
            y = _shares(y, counts)
        samples = checked_samples(X, y, sample_weight)
        if not isinstance(chosen, Gaussian):
            check_target(chosen, samples.y, counts)
        found = Target(_with_trials(samples, counts), None if isinstance(chosen, Gaussian) else chosen)
    return found if offset is None else _with_offset(found, _of_rows("offset", offset))


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


def _with_trials(samples: Samples, trials: Float[np.ndarray, " n"] | None) -> Samples:
    if trials is None:
        return samples
    if len(trials) != samples.n:
        raise ValueError(f"trials must have one entry for each of the {samples.n} rows of positive weight")
    return replace(samples, weight=trials if samples.weight is None else samples.weight * trials)


def _with_offset(target: Target, offset: Float[np.ndarray, " n"]) -> Target:
    if len(offset) != target.samples.n:
        raise ValueError(
            f"offset must have one entry for each of the {target.samples.n} rows, got {len(offset)}"
        )
    if target.family is not None:
        return replace(target, offset=offset)
    # Beside normal noise an offset is a part of y that is known.
    y = target.samples.y
    shifted = y - offset.reshape(-1, *[1] * (y.ndim - 1))
    return replace(target, samples=replace(target.samples, y=shifted), offset=offset)
