"""Where samples come from: files, tables and arrays in, one validated record or stream out."""

from __future__ import annotations

from onehidden.data.arrays import check_arrays
from onehidden.data.opening import open
from onehidden.data.reduction import reduce
from onehidden.data.source import Source
from onehidden.data.table import Batch, Table

__all__ = ["Batch", "Source", "Table", "check_arrays", "open", "reduce"]
