"""The pieces of a decision boundary and the bends between them, walked from piece to piece."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from onehidden.oracle.boundary import Piece, Sides, bends, beyond, flat_piece
from onehidden.oracle.caller import Spent
from onehidden.run import Run

_STARTS = 12  # places where the boundary is entered
_WALKS = 12  # tangents of a piece that are walked, each to both sides
_MOST = 48  # pieces; a boundary of more is that of more units than are looked for
_FARTHEST = 1e4  # scales that a walk goes


@dataclass(eq=False)
class Graph:
    """Pieces, and pairs of them that meet in a bend.

    Attributes
    ----------
    pieces : flat pieces. edges : pairs (i, j), i < j. lost : bends whose other side could not be measured.
    spent : why the walk was cut short, "" if it was not.
    """

    pieces: list[Piece] = field(default_factory=list)
    edges: set[tuple[int, int]] = field(default_factory=set)
    lost: int = 0
    spent: str = ""

    def at(self, point: Float[np.ndarray, " d"]) -> int | None:
        """The piece on whose hyperplane a point lies."""
        near = [abs(piece.height(point)) for piece in self.pieces]
        return int(np.argmin(near)) if near and self.pieces[int(np.argmin(near))].meets(point) else None


def walked(sides: Sides, run: Run, rng: np.random.Generator) -> Graph:
    """Every piece that walks along the boundary come to."""
    graph = Graph()
    try:
        for point, along in entries(sides, rng):
            if graph.at(point) is None:
                _add(graph, sides, point, along, 0.25 * max(1.0, float(np.linalg.norm(point))), rng)
        done = 0
        while done < len(graph.pieces) <= _MOST:
            _leave(graph, sides, done, rng)
            done += 1
            run.report(f"{len(graph.pieces)} pieces of the boundary", sides.box.queries, float("nan"))
    except Spent as spent:
        if not graph.pieces:
            raise
        graph.spent = str(spent)
    return graph


def entries(sides: Sides, rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """Boundary points between typical questions of different labels, and the way the label rises."""
    U = sides.box.typical(256, rng)
    label = sides(U)
    up, down = U[label == 1], U[label == -1]
    count = min(_STARTS, max(len(up), len(down)))
    if len(up) == 0 or len(down) == 0:
        return []
    one, other = (part[np.arange(count) % len(part)] for part in (down, up))
    along = other - one
    size = np.linalg.norm(along, axis=1)
    along /= size[:, None]
    t = sides.crossing(one, along, np.zeros(count), size)
    return [(one[i] + t[i] * along[i], along[i]) for i in np.flatnonzero(np.isfinite(t))]


def _add(
    graph: Graph, sides: Sides, point: np.ndarray, along: np.ndarray, arm: float, rng: np.random.Generator
) -> int | None:
    piece = flat_piece(sides, point, along, arm, rng)
    if piece is None:
        graph.lost += 1
        return None
    graph.pieces.append(piece)
    return len(graph.pieces) - 1


def _leave(graph: Graph, sides: Sides, index: int, rng: np.random.Generator) -> None:
    """Walks from a piece to those around it."""
    piece, d = graph.pieces[index], sides.box.d
    tangents = rng.standard_normal((_WALKS, d))
    tangents -= np.outer(tangents @ piece.normal, piece.normal)
    tangents /= np.linalg.norm(tangents, axis=1, keepdims=True)
    tangents = np.concatenate([tangents, -tangents])
    scale = float(np.sqrt(d))
    t = bends(sides, piece, tangents, scale, _FARTHEST * scale)
    ended = np.flatnonzero(np.isfinite(t))
    points, room = beyond(sides, piece, tangents[ended], t[ended])
    corners = piece.point + t[ended, None] * tangents[ended]
    for point, corner, arm in zip(points, corners, room, strict=True):
        if not np.isfinite(arm):
            continue
        other = graph.at(point)
        if other is None:
            other = _add(graph, sides, point, piece.normal, float(arm), rng)
        # Two pieces that meet in a bend both go through it; else a piece between them was jumped over.
        if other is not None and other != index and graph.pieces[other].meets(corner):
            graph.edges.add((min(index, other), max(index, other)))
