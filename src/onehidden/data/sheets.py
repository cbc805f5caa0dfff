"""Excel sheets (.xlsx) to Arrow tables, through openpyxl."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onehidden.data.faults import Unusable
from onehidden.data.request import Dialect
from onehidden.data.size import must_be_plausible, unpacked_zip
from onehidden.data.written import GAPS

if TYPE_CHECKING:
    import pyarrow as pa

_GAPS = {
    "",
    "NA",
    "N/A",
    "n/a",
    "NaN",
    "nan",
    "null",
    "NULL",
    "#N/A",
    "#DIV/0!",
    "#VALUE!",
    "#REF!",
    "#NUM!",
    *GAPS,
}


def read_sheet(path: Path, dialect: Dialect) -> tuple[pa.Table, tuple[str, ...]]:
    """The first sheet: its first row that is not empty has the names, formulas count by their values."""
    import pyarrow as pa

    try:
        from openpyxl import load_workbook
    except ImportError:
        raise Unusable(
            f"{path} is an Excel sheet, which needs openpyxl: pip install 'onehidden[excel]', or save the "
            "sheet as CSV and give that file"
        ) from None
    must_be_plausible(path, path.stat().st_size, unpacked_zip(path))
    book = load_workbook(path, read_only=True, data_only=True)
    try:
        names = book.sheetnames
        sheet = book[names[0]]
        rows = [
            list(row) for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row)
        ]
    finally:
        book.close()
    if not rows:
        raise Unusable(f"{path} has an empty first sheet {names[0]!r}: put the table there")
    width = max(i for row in rows for i, cell in enumerate(row) if cell is not None) + 1
    head = ["" if cell is None else str(cell) for cell in (rows[0] + [None] * width)[:width]]
    missing = _GAPS | set(dialect.na)
    arrays = []
    for j, name in enumerate(head):
        cells = [row[j] if j < len(row) else None for row in rows[1:]]
        cells = [None if isinstance(cell, str) and cell.strip() in missing else cell for cell in cells]
        arrays.append(_column(path, name, cells, dialect))
    notes = (f"{path} has {len(names)} sheets, of which {names[0]!r} was read",) if len(names) > 1 else ()
    return pa.Table.from_arrays(arrays, names=head), notes


def _column(path: Path, name: str, cells: Sequence[object], dialect: Dialect) -> pa.Array:
    import pyarrow as pa

    if dialect.decimal == ",":
        cells = [_with_point(cell) for cell in cells]
    whole = [float(cell) if isinstance(cell, int) and not isinstance(cell, bool) else cell for cell in cells]
    try:
        return pa.array(whole)
    except (pa.ArrowException, TypeError, ValueError):
        odd = next((cell for cell in cells if isinstance(cell, str)), cells[0])
        raise Unusable(
            f"{path} mixes numbers and {str(odd)[:30]!r} in column {name!r}: make it one kind, leave it "
            "out, or name what stands for a gap with na= (--na)"
        ) from None


def _with_point(cell: object) -> object:
    try:
        return float(cell.replace(",", ".")) if isinstance(cell, str) else cell
    except ValueError:
        return cell
