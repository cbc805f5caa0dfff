"""What y is, given the network's output: normal, counts, shares, positive amounts, classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from onehidden.families.family import Family, Gaussian
from onehidden.families.positive import Gamma, NegativeBinomial, Poisson
from onehidden.families.shares import Bernoulli, Binomial, Softmax
from onehidden.refused import meant

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
# What other libraries call them.
_ELSEWHERE = {
    "normal": "gaussian", "logistic": "bernoulli", "binary": "bernoulli", "multinomial": "softmax",
    "categorical": "softmax", "nb": "negative_binomial", "count": "poisson", "quasipoisson": "poisson",
}  # fmt: skip


def names() -> list[str]:
    """Return the names of the families.

    Returns
    -------
    list of str
        The names, as ``get`` and ``recover`` take them.
    """
    return list(_BY_NAME)


def get(family: str | Family, link: str | None = None, **parameters: Any) -> Family:
    """Return the family of that name; a ``Family`` passes through.

    Parameters
    ----------
    family : str or Family
        One of ``names()``.
    link : str, optional
        One of the family's links; its usual one by default.
    **parameters
        Further fields of the family, such as ``classes`` of a softmax.

    Returns
    -------
    Family
        The family with its link.

    Raises
    ------
    ValueError
        For an unknown name or link.

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
        raise ValueError(f"unknown family {family!r}: {meant(family, names(), elsewhere=_ELSEWHERE)}")
    kind = _BY_NAME[family]
    return kind(kind.links[0] if link is None else link, **parameters)


def from_stored(record: Mapping[str, Any]) -> Family:
    """Return the family whose ``stored`` form is given."""
    kind = _BY_NAME[record["name"]]
    return kind(**{one.name: record[one.name] for one in fields(kind) if one.name in record})
