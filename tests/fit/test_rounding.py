"""Rounding of a target: the decimals it is written with."""

from __future__ import annotations

import numpy as np
import pytest

from onehidden.fit.rounding import decimal_step


@pytest.mark.parametrize(("decimals", "scale"), [(0, 100.0), (2, 10.0), (4, 1.0), (2, 1e6)])
def test_the_step_of_decimals_is_found(decimals, scale):
    y = np.round(scale * np.random.default_rng(decimals).standard_normal(50), decimals)
    assert decimal_step(y) == pytest.approx(10.0**-decimals)


def test_numbers_with_all_their_digits_have_none():
    y = np.random.default_rng(0).standard_normal(50)
    assert decimal_step(y) == 0.0
    assert decimal_step(y.astype(np.float32).astype(float)) == 0.0
    assert decimal_step(np.append(np.round(y, 2), np.pi)) == 0.0
