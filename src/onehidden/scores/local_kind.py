"""What is fitted around a query, the candidates an automatic choice has, and one of them made ready."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from onehidden.scores.kernel_sums import Tiles, prepare
from onehidden.scores.local_gaussian import CURVATURES, LocalFit, gaussian_fit
from onehidden.scores.local_polynomial import KERNELS, REACH, polynomial_fit
from onehidden.scores.plug_in import Choice
from onehidden.scores.sample import Coordinates, coordinates

_GRID = np.array([0.25, 0.3, 0.36, 0.43, 0.51, 0.6, 0.72, 0.85, 1.0, 1.3, 1.8, 3.0, 30.0])
_COMPACT = np.array([0.8, 1.0, 1.3, 1.6, 2.0, 2.5, 3.2, 4.0])  # half-widths of the kernel's box


@dataclass(frozen=True)
class Setting:
    """A choice made ready on a sample: working coordinates, the sample there, its tiles."""

    choice: Choice
    coordinates: Coordinates
    Z: np.ndarray
    data: Tiles | None


@dataclass(frozen=True)
class Kind:
    """Degree, kernel and curvature of the fits; the sample is not known yet."""

    degree: int
    kernel: str
    curvature: str

    def __post_init__(self) -> None:
        if self.degree not in (1, 2, 3, 4, 5, 6):
            raise ValueError(f"degree must be 1 … 6, got {self.degree}")
        if self.kernel not in KERNELS:
            raise ValueError(f"kernel must be one of {', '.join(KERNELS)}, got {self.kernel!r}")
        if self.curvature not in (*CURVATURES[:3], "auto"):
            raise ValueError(f"curvature must be full, diagonal, spherical or auto, got {self.curvature!r}")

    @property
    def closed(self) -> bool:
        """Whether a fit has a closed form; else it is Newton's."""
        return self.kernel == "gaussian" and self.degree <= 2

    def shapes(self, d: int) -> tuple[str, ...]:
        """Quadratic terms that can be told apart."""
        if not self.closed or self.degree == 1:
            return ("full",)
        shapes = CURVATURES[:3] if self.curvature == "auto" else (self.curvature,)
        return shapes[:1] if d == 1 else shapes

    def grid(self, n: int, d: int) -> Float[np.ndarray, " g"]:
        """Bandwidths to try: the best one shrinks like n^{-1/(2p+2+d)}, and neighbours thin out with d."""
        rate = (n / 1000) ** (-1 / (2 * self.degree + 2 + d))
        if self.closed:
            return _GRID * min(1.0, rate)
        return _COMPACT / REACH[self.kernel] * max(rate, 0.5)

    def choices(self, n: int, d: int) -> list[Choice]:
        """Each shape in the coordinates where it is natural, and the full one under round kernels, too.

        A whitened kernel is longest where the law is widest, which is where two components lie apart.
        """
        shapes = self.shapes(d)
        pairs = [(shape, shape) for shape in shapes]
        pairs += [("full", kind) for kind in ("diagonal", "spherical") if "full" in shapes]
        return [Choice(shape, kind, float(h)) for shape, kind in pairs for h in self.grid(n, d)]

    def ready(self, choice: Choice, X: Float[np.ndarray, "n d"]) -> Setting:
        """The choice on that sample."""
        frame = coordinates(X, choice.coordinates)
        Z = np.ascontiguousarray(frame.points(X))
        return Setting(choice, frame, Z, prepare(Z) if self.closed else None)

    def fit(
        self,
        at: Setting,
        Q: Float[np.ndarray, "q d"],
        h: Float[np.ndarray, " q"],
        leave_out: bool = False,
    ) -> LocalFit:
        """Fits around the queries, all in working coordinates."""
        if at.data is not None:
            curvature = "none" if self.degree == 1 else at.choice.curvature
            fit = gaussian_fit(at.data, len(at.Z), Q, h, curvature, leave_out)
            return fit._replace(derivatives=fit.derivatives[: self.degree])
        return polynomial_fit(at.Z, Q, h, self.degree, self.kernel, leave_out)
