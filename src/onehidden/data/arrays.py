"""Samples in memory: checked real arrays; frames, mappings and matrices as Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Bool, Float

from onehidden.data.table import Targets

if TYPE_CHECKING:
    import pyarrow as pa


def must_be_aligned(X: Any, y: Any, called: str = "y") -> None:
    """Refuse pandas objects whose rows have other labels: by place they would be paired wrongly."""
    one, other = (v.index if is_pandas(v) and hasattr(v, "iloc") else None for v in (X, y))
    if one is None or other is None or len(one) != len(other) or one.equals(other):
        return
    raise ValueError(
        f"the index of {called} has other labels, or another order, than that of X: align them, as "
        f"{called}.loc[X.index], or give {called}.to_numpy() if they are in order"
    )


def is_text(values: object) -> bool:
    """Whether every value is text, as labels are."""
    if values is None:
        return False
    array = np.asarray(values)
    return array.dtype.kind in "US" or (
        array.dtype.kind == "O" and array.size > 0 and all(isinstance(one, str) for one in array.flat)
    )


def is_pandas(values: object) -> bool:
    """Whether an object is one of pandas, which is not imported for that."""
    return type(values).__module__.split(".")[0] == "pandas"


def refuse_gaps(labels: npt.ArrayLike, who: str) -> None:
    """Refuse None, NaN and NA among labels."""
    values = np.asarray(labels)
    gap = np.array([one is None or (one == one) is not True for one in values.ravel().tolist()], bool)
    if gap.any():
        row = int(np.argmax(gap)) // max(values[:1].size, 1)
        raise ValueError(f"{who} has gaps ({int(gap.sum())}, the first at row {row}): fill or drop them")


def as_real(values: object, who: str) -> np.ndarray:
    """The values as a real numeric array of any shape."""
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise ValueError(f"{who} must be a dense array, got a sparse matrix: use {who}.toarray()")
    if np.ma.is_masked(values):
        raise ValueError(f"{who} must hold finite numbers only, got masked values: drop those rows first")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError):
        raise ValueError(
            f"{who} must be an array of numbers, got rows of unequal length: pad or cut them"
        ) from None
    if array.dtype.kind == "O" and array.ndim:
        refuse_gaps(array, who)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{who} must be an array of real numbers, got values of type {array.dtype.name}: convert it "
            "first, for example with astype(float)"
        )
    return array


def varying(low: Float[np.ndarray, " d"], high: Float[np.ndarray, " d"]) -> Bool[np.ndarray, " d"]:
    """Whether high - low exceeds 8 eps max(|low|, |high|).

    Below that no weight on a column differs from a bias.
    """
    size = np.maximum(np.abs(low), np.abs(high))
    with np.errstate(over="ignore"):
        return high > low + 8 * np.finfo(float).eps * size


def flat_columns(values: np.ndarray) -> np.ndarray:
    """Places of the columns that do not vary."""
    return np.flatnonzero(~varying(values.min(axis=0), values.max(axis=0)))


def check_arrays(
    X: object, y: object = None, feature_names: Sequence[str] | None = None, constant: bool = False
) -> tuple[np.ndarray, np.ndarray | None]:
    """Check inputs and target, and return them as arrays.

    Parameters
    ----------
    X : array_like of shape (n, d)
        An array, or a pandas, polars or pyarrow table.
    y : array_like of shape (n,), (n, 1) or (n, q), optional
        Target, or several outputs.
    feature_names : sequence of str, optional
        Names for messages; those of a table are found, columns are numbered otherwise.
    constant : bool
        Whether columns may be constant.

    Returns
    -------
    tuple of ndarray
        X as a finite C-ordered (n, d) float64 matrix; y as a finite (n,) vector or (n, q) matrix, or None.

    Raises
    ------
    ValueError
        One sentence: wrong or mismatched shapes, NaN or infinity, complex numbers, text, Python objects,
        sparse matrices, constant columns, pandas objects whose indices differ.
    """
    must_be_aligned(X, y)
    if is_frame(X):
        from onehidden.data.opening import open

        table: Any = open(X, stream=False)
        X, feature_names = table.X, feature_names or table.feature_names
    matrix = as_real(X, "X")
    if matrix.ndim != 2:
        single = "use X.reshape(-1, 1), or of a frame frame[['column']], for a single feature"
        cure = single if matrix.ndim == 1 else "flatten it"
        raise ValueError(f"X must be a matrix of n rows and d columns, got shape {matrix.shape}: {cure}")
    n, d = matrix.shape
    if n < 2 or d == 0:
        raise ValueError(f"X must have at least 2 rows and a column, got shape {matrix.shape}: bring more")
    matrix = np.ascontiguousarray(matrix, dtype=float)
    names = None if feature_names is None else list(map(str, feature_names))
    _must_be_finite("X", matrix, names)
    target = None if y is None else _target(y, n, constant)
    if not constant and (flat := flat_columns(matrix)).size:
        are, them = ("is", "it") if flat.size == 1 else ("are", "them")
        raise ValueError(
            f"{_called(flat, names)} of X {are} constant (the first is {matrix[0, flat[0]]:g}): leave {them} "
            "out, and use bias=True for constant terms"
        )
    return matrix, target


def _target(y: Any, n: int, constant: bool) -> np.ndarray:
    """The target as (n,) or, of several outputs, (n, q) finite numbers."""
    if is_frame(y):
        y = np.column_stack([np.asarray(column) for column in to_arrow(y, "y").columns])
    target = as_real(y, "y")
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    if target.ndim not in (1, 2) or 0 in target.shape:
        raise ValueError(f"y must have one number per row, or one for each output, got shape {target.shape}")
    if len(target) != n:
        raise ValueError(f"X has {n} rows but y has {len(target)} values: give both the same rows")
    target = np.ascontiguousarray(target, dtype=float)
    _must_be_finite("y", target, None)
    if target.ndim == 2:
        if target.shape[1] >= n:
            raise ValueError(
                f"y has {target.shape[1]} outputs but only {n} rows: bring more rows, or transpose it"
            )
        if not constant and (flat := flat_columns(target)).size:
            raise ValueError(f"{_called(flat, None)} of y is constant: leave it out, it shows no unit")
    return target


def _must_be_finite(who: str, values: np.ndarray, names: list[str] | None) -> None:
    bad = ~np.isfinite(values.reshape(len(values), -1))
    rows = np.asarray(bad.any(axis=1))
    if rows.any():
        where = "" if values.ndim == 1 else f" in {_called(np.flatnonzero(bad.any(axis=0)), names)}"
        raise ValueError(
            f"{who} must hold finite numbers only, but {int(rows.sum())} of {len(rows)} rows (the first at "
            f"index {int(np.argmax(rows))}) hold NaN or infinity{where}: drop those rows or fill the gaps"
        )


def _called(columns: np.ndarray, names: list[str] | None) -> str:
    plural = "column" if len(columns) == 1 else "columns"
    shown = [str(j) if names is None else f"{names[j]!r} (index {j})" for j in columns[:5]]
    return f"{plural} {', '.join(shown)}" + ("" if len(columns) <= 5 else f" and {len(columns) - 5} more")


def is_frame(source: object) -> bool:
    """Whether the source is a table with column names (pandas, polars, pyarrow or alike)."""
    if hasattr(source, "collect_schema"):  # polars; asking a lazy frame for its columns is a query
        return True
    named = hasattr(source, "columns") or hasattr(source, "column_names")
    return named and (is_pandas(source) or hasattr(source, "__arrow_c_stream__"))


def to_arrow(frame: Any, where: str = "the table") -> pa.Table:
    """A frame as an Arrow table, names as text; the index of a pandas frame is left behind."""
    import pyarrow as pa

    if not is_pandas(frame):
        return pa.table(frame.collect() if hasattr(frame, "collect") else frame)  # a polars LazyFrame
    names = [str(name) for name in frame.columns]
    columns = [_column(frame.iloc[:, j], f"column {name!r} of {where}") for j, name in enumerate(names)]
    return pa.Table.from_arrays(columns, names=names)


def as_arrow(source: object, targets: Targets, where: str = "the table") -> tuple[pa.Table, Targets]:
    """Whatever is held in memory as named columns, and the names of the targets among them."""
    import pyarrow as pa

    if isinstance(source, tuple) and len(source) == 2:
        must_be_aligned(*source)
        source = {"X": source[0], "y": source[1]}
    held: Mapping[str, Any] = source if isinstance(source, Mapping) else {"X": source}
    if not held:
        raise ValueError(f"{where} holds no arrays: give X (n, d) and y (n,), or one column a name")
    if isinstance(source, Mapping) and not ("X" in held and (is_frame(held["X"]) or np.ndim(held["X"]) != 1)):
        named = {str(name): _column(values, f"column {str(name)!r}") for name, values in held.items()}
        lengths = {len(column) for column in named.values()}
        if len(lengths) > 1 or len(named) < len(held):
            raise ValueError(
                f"columns of {where} must be of one length and of different names, got lengths "
                f"{', '.join(f'{len(column)} of {name!r}' for name, column in list(named.items())[:5])}"
            )
        return pa.table(named), targets
    table = _as_columns(held["X"], "x", where)
    if "feature_names" in held:
        names = [str(name) for name in np.ravel(held["feature_names"])]
        if len(names) != table.num_columns:
            raise ValueError(
                f"{where} names {len(names)} features for {table.num_columns} columns: give one name a column"
            )
        table = table.rename_columns(names)
    wanted, found = placed(targets or ("y",) * ("y" in held), table.column_names, where), []
    for name in wanted:
        if name in table.column_names or not isinstance(source, Mapping):
            found.append(name)
            continue
        if name not in held:
            others = [key for key in held if key not in ("X", "feature_names")]
            raise ValueError(f"{where} has no target array {name!r}: it holds {others or 'only X'}")
        y = _as_columns(held[name], name, f"target {name!r}")
        if len(y) != len(table):
            raise ValueError(
                f"target {name!r} must have one value a row of X ({len(table)}), got {len(y)}: give both the "
                "same rows"
            )
        y = y.rename_columns([name]) if y.num_columns == 1 else y
        for column in y.column_names:
            table = table.append_column(column, y[column])
        found += y.column_names
    return table, tuple(found)


def _as_columns(values: Any, name: str, where: str) -> pa.Table:
    """The columns of a frame by their own names, of a matrix or a target numbered behind the given one."""
    import pyarrow as pa

    if is_frame(values):
        return to_arrow(values, where)
    array = np.asarray(values, dtype=object) if name != "x" and is_text(values) else as_real(values, where)
    if array.ndim != 2 and (name == "x" or array.ndim != 1):
        raise ValueError(
            f"{where} must be a matrix of n rows and d columns, got shape {array.shape}: "
            "use X.reshape(-1, 1) for a single feature"
        )
    columns = [_column(one, where) for one in array.reshape(len(array), -1).T]
    return pa.Table.from_arrays(columns, names=[f"{name}{j}" for j in range(len(columns))])


def _column(values: Any, who: str) -> pa.Array | pa.ChunkedArray:
    """One column of a dict, a matrix or a pandas frame; text and gaps stay as they are."""
    import pyarrow as pa

    plain = None if hasattr(values, "toarray") else np.asarray(values)
    if is_pandas(values) or (plain is not None and plain.dtype.kind in "UTO" and plain.ndim == 1):
        try:
            return pa.array(values if is_pandas(values) else np.asarray(plain).tolist(), from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError):
            raise ValueError(
                f"{who} must hold numbers, got Python objects of several kinds: convert it, as with "
                "pandas.to_numeric, or leave it out"
            ) from None
    array = as_real(values, who)
    if array.ndim not in (1, 2) or array.size != len(array):
        raise ValueError(
            f"{who} must be one-dimensional, got shape {array.shape}: give one array a column, or one matrix "
            "under the name X"
        )
    return pa.array(np.ascontiguousarray(array.ravel(), dtype=float))


def placed(targets: Targets, names: Sequence[str], where: str) -> tuple[str, ...]:
    """Targets by name; a number that is no name is a place among the columns."""
    found = []
    for target in targets:
        if isinstance(target, int) and str(target) not in names:
            if not -len(names) <= target < len(names):
                raise ValueError(f"{where} has no column {target}: it has {len(names)}, counted from 0")
            target = names[target]
        found.append(str(target))
    return tuple(found)
