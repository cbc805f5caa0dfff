"""The region of typical questions: centre and scale of each input, from rows of x, a domain, or neither."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from onehidden import data
from onehidden.oracle.domain import Domain


def typical_region(
    inputs: npt.ArrayLike | None, d: int, domain: Domain
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Centre and scale of each input, and the inputs' names."""
    names = tuple(f"x{j}" for j in range(d))
    if inputs is None:
        closed = np.isfinite(domain.low) & np.isfinite(domain.high)
        with np.errstate(invalid="ignore"):
            center = np.where(closed, 0.5 * (domain.low + domain.high), 0.0)
            width = np.where(closed & domain.free, 0.25 * (domain.high - domain.low), 1.0)
        return _one_scale_inside(center, width, domain), width, names
    columns = getattr(inputs, "column_names", None)
    columns = getattr(inputs, "columns", None) if columns is None else columns
    names = names if columns is None else tuple(str(c) for c in columns)
    matrix = _typical_rows(inputs)
    if matrix.shape[1] != d:
        raise ValueError(f"inputs has {matrix.shape[1]} columns, but fn takes n_inputs={d}")
    if len(matrix) < 2:
        raise ValueError("inputs must hold at least 2 rows of typical x, got 1")
    inside = domain.contains(matrix)
    if not inside.all():
        raise ValueError(f"row {int(np.argmin(inside))} of inputs lies outside the domain")
    spread = matrix.std(axis=0)
    # A column that never varies in the data is still an input of the box: it is asked about around its value.
    width = np.where(domain.free, 0.25 * (domain.high - domain.low), np.inf)
    scale = np.where(spread > 0, spread, np.minimum(1.0, width))
    return _one_scale_inside(matrix.mean(axis=0), scale, domain), scale, names


def _one_scale_inside(
    center: Float[np.ndarray, " d"], scale: Float[np.ndarray, " d"], domain: Domain
) -> Float[np.ndarray, " d"]:
    """The centre moved away from bounds: on one there is no room to ask on both sides."""
    low, high = domain.low + scale, domain.high - scale
    return np.where(domain.free, np.clip(center, low, high), domain.low)


def _typical_rows(inputs: npt.ArrayLike) -> np.ndarray:
    """Typical x, checked as samples are; but a column may be constant."""
    try:
        matrix = np.array(inputs, dtype=float)
    except (TypeError, ValueError):
        return data.check_arrays(inputs, None)[0]
    if matrix.ndim != 2 or len(matrix) < 2:
        return data.check_arrays(inputs, None)[0]
    constant = np.all(matrix == matrix[0], axis=0)
    varied = np.where(constant, np.arange(len(matrix))[:, None], matrix)
    return np.where(constant, matrix, data.check_arrays(varied, None)[0])
