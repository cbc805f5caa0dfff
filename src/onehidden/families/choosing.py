"""Families by name."""

from __future__ import annotations

from onehidden.families.amounts import Gamma, Gaussian
from onehidden.families.counts import NegativeBinomial, Poisson
from onehidden.families.family import Family
from onehidden.families.shares import Bernoulli, Binomial
from onehidden.families.softmax import Softmax

_ALL: tuple[type[Family], ...] = (Gaussian, Poisson, Bernoulli, Binomial, NegativeBinomial, Gamma, Softmax)
_BY_NAME = {family.name: family for family in _ALL}


def names() -> list[str]:
    """The families that can be asked for by name."""
    return list(_BY_NAME)


def get(
    family: str | Family, link: str | None = None, *, classes: int | None = None, alpha: float | None = None
) -> Family:
    """The family of that name with its usual link or the one asked for; a ``Family`` passes through.

    Parameters
    ----------
    classes : of a softmax. alpha : of the negative binomial, where it is known.
    """
    if isinstance(family, Family):
        if link is not None and link != family.link:
            raise ValueError(f"the family given has the link {family.link}, and link={link!r} was asked for")
        return family
    if not isinstance(family, str) or family not in _BY_NAME:
        raise ValueError(f"unknown family {family!r}: choose one of {', '.join(_BY_NAME)}")
    kind = _BY_NAME[family]
    chosen = kind.links[0] if link is None else link
    if classes is not None and kind is not Softmax:
        raise ValueError(f"classes are for the softmax family, not for {family}")
    if alpha is not None and kind is not NegativeBinomial:
        raise ValueError(f"alpha is for the negative_binomial family, not for {family}")
    if kind is Softmax:
        if classes is None:
            raise ValueError("the softmax family needs the number of classes")
        return Softmax(chosen, classes)
    if kind is NegativeBinomial and alpha is not None:
        return NegativeBinomial(chosen, alpha, given=True)
    return kind(chosen)
