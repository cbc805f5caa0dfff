"""Some rows of a source in memory: what a picture of it is drawn from."""

from __future__ import annotations

from functools import partial

import numpy as np

from onehidden.data.reduction import reduce
from onehidden.data.source import Source
from onehidden.data.survey import Survey
from onehidden.data.table import Table


def sampled(source: Table | Source, rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray | None]:
    """X and y of a table, or of about so many rows of a streamed source, drawn alike from all of it.

    Which rows those are depends on the seed alone. A source needs a target.
    """
    if isinstance(source, Table):
        return source.X, source.y
    wanted = min(rows, source.n_rows)
    outputs = len(source.target_names) if len(source.target_names) > 1 else None
    found = reduce(source, partial(Survey, source.n_inputs, wanted, source.n_rows, seed, outputs)).result()
    return found.X, found.y
