"""Samples in memory: checked real arrays; frames, mappings and matrices as Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from onehidden.data.table import Targets

if TYPE_CHECKING:
    import pyarrow as pa


def must_be_aligned(X: Any, y: Any, called: str = "y") -> None:
    """Refuse pandas objects whose rows have other labels: by place they would be paired wrongly."""
    one, other = (v.index if is_pandas(v) and hasattr(v, "iloc") else None for v in (X, y))
    if one is None or other is None or len(one) != len(other) or one.equals(other):
        return
    place = int(np.argmax(np.asarray(one != other)))
    same = "the same labels in another order" if set(one) == set(other) else "other labels"
    raise ValueError(
        f"the index of {called} has {same} than that of X (first at row {place}: {other[place]!r} beside "
        f"{one[place]!r}): align them, as {called}.loc[X.index], or give {called}.to_numpy() if they "
        "are in order"
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


def as_real(values: object, who: str) -> np.ndarray:
    """The values as a real numeric array of any shape; structured arrays pass through."""
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise ValueError(f"{who} must be a dense array, got a sparse matrix: use {who}.toarray()")
    if np.ma.is_masked(values):
        raise ValueError(
            f"{who} must hold finite numbers only, got {np.ma.count_masked(values)} masked values: drop "
            "those rows or fill the gaps first"
        )
    try:
        array = np.asarray(values)
    except (ValueError, TypeError):
        raise ValueError(
            f"{who} must be an array of numbers, got rows of unequal length: pad or cut them"
        ) from None
    if array.dtype.names:
        return array
    kind = array.dtype.kind
    if kind == "c":
        raise ValueError(
            f"{who} must hold real numbers, got complex ones: give real and imaginary parts as two columns"
        )
    if kind in "USTOMmV":
        what = {"O": "Python objects", "M": "dates", "m": "time spans", "V": "raw bytes"}.get(kind, "text")
        raise ValueError(
            f"{who} must be an array of numbers, got {what}: convert it first, for example with astype(float)"
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
        cure = "use X.reshape(-1, 1) for a single feature" if matrix.ndim == 1 else "flatten it"
        raise ValueError(f"X must be a matrix of n rows and d columns, got shape {matrix.shape}: {cure}")
    n, d = matrix.shape
    if n == 0 or d == 0:
        raise ValueError(f"X must have rows and columns, got shape {matrix.shape}: give a table with data")
    matrix = np.ascontiguousarray(matrix, dtype=float)
    names = None if feature_names is None else list(map(str, feature_names))
    bad = ~np.isfinite(matrix)
    if bad.any():
        raise ValueError(
            f"X must hold finite numbers only, but {int(bad.any(axis=1).sum())} of {n} rows hold NaN or "
            f"infinity in {_called(np.flatnonzero(bad.any(axis=0)), names)}: drop those rows or fill the "
            "gaps first"
        )
    target = None if y is None else _target(y, n, constant)
    if n == 1:
        raise ValueError("X must have at least 2 rows, got 1: nothing can be learnt from a single sample")
    flat = flat_columns(matrix)
    if flat.size and not constant:
        are, first, them = ("is", "its value is", "it") if flat.size == 1 else ("are", "the first is", "them")
        value = matrix[:, flat[0]].min()
        raise ValueError(
            f"{_called(flat, names)} of X {are} constant ({first} {value:g}): leave {them} out, and "
            "use bias=True for constant terms"
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
    if target.ndim == 2 and target.shape[1] >= n:
        raise ValueError(
            f"y has {target.shape[1]} outputs but only {n} rows: bring more rows, or transpose it"
        )
    target = np.ascontiguousarray(target, dtype=float)
    bad = ~np.isfinite(target)
    if bad.any():
        count, first = int(bad.sum()), int(np.argmax(bad.reshape(n, -1).any(axis=1)))
        raise ValueError(
            f"y must hold finite numbers only, but {count} of {bad.size} values "
            f"{'is' if count == 1 else 'are'} NaN or infinite (first at index {first}): drop those rows first"
        )
    if target.ndim == 2 and not constant and (flat := flat_columns(target)).size:
        raise ValueError(f"{_called(flat, None)} of y is constant: leave it out, it shows no unit")
    return target


def _called(columns: np.ndarray, names: list[str] | None) -> str:
    plural = "column" if len(columns) == 1 else "columns"
    shown = [str(j) if names is None else f"{names[j]!r} (index {j})" for j in columns[:5]]
    return f"{plural} {', '.join(shown)}" + ("" if len(columns) <= 5 else f" and {len(columns) - 5} more")


def as_arrow(source: object, targets: Targets, where: str = "the table") -> tuple[pa.Table, Targets]:
    """Whatever is held in memory as named columns, and the names of the targets among them."""
    if isinstance(source, tuple) and len(source) == 2:
        must_be_aligned(*source)
        source = {"X": source[0], "y": source[1]}
    if not isinstance(source, Mapping):
        return _from_matrix(source, targets, where)
    if "X" in source and (is_frame(source["X"]) or np.ndim(source["X"]) != 1):
        return _from_pair(source, targets, where)
    return _from_columns(source, where), targets


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


def _from_columns(source: Mapping[str, Any], where: str) -> pa.Table:
    """A dict of columns."""
    import pyarrow as pa

    if not source:
        raise ValueError(f"{where} holds no arrays: give X (n, d) and y (n,), or one column a name")
    arrays = {str(name): _column(values, f"column {str(name)!r}") for name, values in source.items()}
    short, long = (pick(arrays, key=lambda name: len(arrays[name])) for pick in (min, max))
    if len(arrays[short]) < len(arrays[long]):
        raise ValueError(
            f"columns must be of one length, but {short!r} has {len(arrays[short])} rows and {long!r} "
            f"{len(arrays[long])}: give them the same rows"
        )
    if len(arrays) < len(source):
        raise ValueError(
            f"{where} has more than one column called the same once written as text: rename them"
        )
    return pa.table(arrays)


def _column(values: Any, who: str) -> pa.Array | pa.ChunkedArray:
    """One column of a dict or of a pandas frame; text and gaps stay as they are."""
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
    if array.shape[1:] not in ((), (1,)) or array.ndim == 0:
        raise ValueError(
            f"{who} must be one-dimensional, got shape {array.shape}: give one array a column, or one matrix "
            "under the name X"
        )
    return pa.array(np.ascontiguousarray(array.ravel(), dtype=float))


def _from_pair(source: Mapping[str, Any], targets: Targets, where: str) -> tuple[pa.Table, Targets]:
    """The matrix X, with the target y or the arrays that ``targets`` name."""
    given = source.get("feature_names")
    names = None if given is None else np.asarray(given).ravel().tolist()
    table, targets = _from_matrix(source["X"], targets, where, names)
    found: list[str] = []
    for name in map(str, targets or (("y",) if "y" in source else ())):
        if name in table.column_names:
            found.append(name)
            continue
        if name not in source:
            others = [key for key in source if key not in ("X", "feature_names")]
            held = f"it holds {', '.join(map(repr, others))}" if others else "it holds only X"
            raise ValueError(f"{where} has no target array {name!r}: {held}")
        for called, column in _outputs(source[name], name, table.num_rows):
            table = table.append_column(called, column)
            found.append(called)
    return table, tuple(found)


def _outputs(y: Any, name: str, n: int) -> list[tuple[str, pa.Array | pa.ChunkedArray]]:
    """The columns of a target: one of (n,) or (n, 1), q of (n, q), by their own names if they have any."""
    who = f"target {name!r}"
    if is_frame(y):
        frame = to_arrow(y, who)
        columns, names, shape = list(frame.columns), frame.column_names, frame.shape
    else:
        values = np.asarray(y, dtype=object) if is_text(y) else as_real(y, who)
        shape = values.shape
        columns = (
            [_column(one, who) for one in values.reshape(len(values), -1).T] if values.ndim in (1, 2) else []
        )
        names = [f"{name}{j}" for j in range(len(columns))]
    if shape[:1] != (n,) or not columns:
        raise ValueError(
            f"{who} must have one value a row of X ({n}), got shape {shape}: give both the same rows"
        )
    return list(zip([name] if len(columns) == 1 else names, columns, strict=True))


def _from_matrix(
    source: object, targets: Targets, where: str, names: Sequence[str] | None = None
) -> tuple[pa.Table, Targets]:
    """A frame, a structured array, or a matrix with or without names."""
    import pyarrow as pa

    if is_frame(source):
        return to_arrow(source, where), targets
    array = as_real(source, where)
    if array.dtype.names:
        return _from_columns({name: array[name] for name in array.dtype.names}, where), targets
    if array.ndim != 2:
        raise ValueError(
            f"{where} must be a matrix of n rows and d columns, got shape {array.shape}: "
            "use X.reshape(-1, 1) for a single feature"
        )
    d = array.shape[1]
    named = [f"x{j}" for j in range(d)] if names is None else list(map(str, names))
    if len(named) != d:
        raise ValueError(f"{where} names {len(named)} features for {d} columns: give one name a column")
    columns = [pa.array(np.ascontiguousarray(array[:, j], dtype=float)) for j in range(d)]
    return pa.Table.from_arrays(columns, names=named), placed(targets, named, where)


def placed(targets: Targets, names: Sequence[str], where: str) -> Targets:
    """Targets by name; places among the columns become the names there."""
    for target in targets:
        if isinstance(target, int) and not -len(names) <= target < len(names):
            raise ValueError(f"{where} has no column {target}: it has {len(names)}, counted from 0")
    return tuple(names[target] if isinstance(target, int) else target for target in targets)
