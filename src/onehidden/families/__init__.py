"""What y is, given the network's output: normal, counts, shares, positive amounts, classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from onehidden.families.family import Family, Gaussian
from onehidden.families.positive import Gamma, NegativeBinomial, Poisson
from onehidden.families.shares import Bernoulli, Binomial, Softmax

__all__ = [
    "Bernoulli",
    "Binomial",
    "Family",
    "Gamma",
    "Gaussian",
    "NegativeBinomial",
    "Poisson",
    "Softmax",
    "get",
    "names",
]

_ALL: tuple[type[Family], ...] = (Gaussian, Poisson, Bernoulli, Binomial, NegativeBinomial, Gamma, Softmax)
_BY_NAME = {family.name: family for family in _ALL}


def names() -> list[str]:
    """Return the names of the families.

    Returns
    -------
    list of str
        The names, as ``get`` and ``recover`` take them.
    """
    return list(_BY_NAME)


def get(
    family: str | Family, link: str | None = None, *, classes: int | None = None, alpha: float | None = None
) -> Family:
    """Return the family of that name; a ``Family`` passes through.

    Parameters
    ----------
    family : str or Family
        One of ``names()``.
    link : str, optional
        One of the family's links; its usual one by default.
    classes : int, optional
        Number of labels of a softmax.
    alpha : float, optional
        Parameter of the negative binomial, where it is known.

    Returns
    -------
    Family
        The family with its link.

    Raises
    ------
    ValueError
        For an unknown name or link, or a parameter that the family does not have.

    Examples
    --------
    >>> import numpy as np
    >>> import onehidden as oh
    >>> counts = oh.families.get("poisson")
    >>> counts
    Poisson(link='log')
    >>> counts.mean(np.zeros(2)).tolist()
    [1.0, 1.0]
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


def from_stored(record: Mapping[str, Any]) -> Family:
    """Return the family whose ``stored`` form is given."""
    kind = _BY_NAME[record["name"]]
    return kind(**{one.name: record[one.name] for one in fields(kind) if one.name in record})
