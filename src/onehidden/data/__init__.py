"""Where samples come from: files, tables and arrays in, one validated record out."""

from __future__ import annotations

from onehidden.data.arrays import check_arrays
from onehidden.data.opening import open
from onehidden.data.table import Table

__all__ = ["Table", "check_arrays", "open"]
