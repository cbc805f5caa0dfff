"""The one number that an activation carries: the slope below zero of a piecewise linear one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onehidden.network import OneHiddenNet


def slope_below(net: OneHiddenNet) -> float:
    """-g(-1): the slope of g on t < 0, where g is linear there."""
    return -float(net.activation(-1.0))
