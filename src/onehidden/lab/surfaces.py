"""Pictures of a landscape: values over two row angles (d = k = 2) or over a plane through any point."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from onehidden.objectives.base import Objective
from onehidden.precision import in_double

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Surface:
    """An objective on a grid, with what its grid shows.

    Attributes
    ----------
    first, second : (p,) and (q,) coordinates.
    values : (p, q).
    minima, saddles : (·, 2) coordinates of grid points below all, or in turn above and below, their ring.
    labels : names of the two axes.
    """

    first: np.ndarray
    second: np.ndarray
    values: np.ndarray
    minima: np.ndarray
    saddles: np.ndarray
    labels: tuple[str, str]

    def draw(self, axes: Axes) -> None:
        """Filled contours with minima (circles) and saddles (crosses) on Matplotlib axes."""
        mesh = axes.contourf(self.first, self.second, self.values.T, levels=30, cmap="viridis")
        axes.figure.colorbar(mesh, ax=axes)
        for points, marker, name in ((self.minima, "o", "minimum"), (self.saddles, "x", "saddle")):
            if len(points):
                axes.scatter(points[:, 0], points[:, 1], marker=marker, color="white", label=name)
        axes.set_xlabel(self.labels[0])
        axes.set_ylabel(self.labels[1])
        if len(self.minima) + len(self.saddles):
            axes.legend(loc="upper right", facecolor="0.3", labelcolor="white")


@in_double
def angle_surface(objective: Objective, data: object, size: int = 121) -> Surface:
    """The objective at rows (cos α, sin α), (cos β, sin β) for d = k = 2, both angles over [0, π)."""
    source = objective.prepare(data)
    angles = np.linspace(0, np.pi, size, endpoint=False)
    alpha, beta = np.meshgrid(angles, angles, indexing="ij")
    rows = np.stack(
        [np.stack([np.cos(t), np.sin(t)], axis=-1) for t in (alpha.ravel(), beta.ravel())], axis=1
    )
    values = np.asarray(_many(objective, jnp.asarray(rows), source)).reshape(size, size)
    minima, saddles = _critical(values, periodic=True)
    return Surface(
        angles, angles, values, angles[minima], angles[saddles], ("angle of row 1", "angle of row 2")
    )


@in_double
def slice_surface(
    objective: Objective,
    data: object,
    params: npt.ArrayLike,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    radius: float = 1.0,
    size: int = 61,
) -> Surface:
    """The objective at params + s·first + t·second, |s|, |t| ≤ radius."""
    P, U, V = (np.asarray(part, float) for part in (params, first, second))
    if P.shape != U.shape or P.shape != V.shape:
        raise ValueError(f"the two directions must have the shape of params, {P.shape}")
    source = objective.prepare(data)
    t = np.linspace(-radius, radius, size)
    points = P + t[:, None, None, None] * U + t[None, :, None, None] * V
    values = np.asarray(_many(objective, jnp.asarray(points.reshape(-1, *P.shape)), source)).reshape(
        size, size
    )
    minima, saddles = _critical(values, periodic=False)
    return Surface(
        t, t, values, t[minima], t[saddles], ("along the first direction", "along the second direction")
    )


@partial(jax.jit, static_argnums=0)
def _many(objective: Objective, points: jax.Array, source: object) -> jax.Array:
    return jax.lax.map(lambda p: objective.function(p, source), points)


def _critical(values: np.ndarray, *, periodic: bool) -> tuple[np.ndarray, np.ndarray]:
    """Index pairs of strict grid minima and of saddles: four sign changes around the ring of neighbours."""
    ring = [(-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1)]
    differences = np.stack([np.roll(values, (-i, -j), axis=(0, 1)) - values for i, j in ring])
    inside = np.ones(values.shape, bool)
    if not periodic:
        inside[[0, -1], :] = inside[:, [0, -1]] = False
    above = differences > 0
    changes = np.sum(above != np.roll(above, 1, axis=0), axis=0)
    minima, saddles = inside & np.all(above, axis=0), inside & (changes >= 4)
    return np.argwhere(minima), np.argwhere(saddles)
