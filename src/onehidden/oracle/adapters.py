"""Boxes that people have, as functions of an (n, d) array: PyTorch, ONNX files, scikit-learn, endpoints."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np

from onehidden.atomic import locked, write_atomically
from onehidden.options import check_positive
from onehidden.oracle.domain import Outputs, Points

_MARK = b"onehidden answers 2\n"


class AnswerBook:
    """Answers by query, in memory and, with a path, in a file that grows record by record.

    The file is a line with its format, a line of JSON (the source, the numbers of inputs and outputs) and
    records of that many float64 each, query and answer. A last record that a crash cut short is dropped. One
    process at a time has the file.

    Parameters
    ----------
    path : str, Path or None
        The file; None keeps answers in memory only.
    source : str
        Who answers; a file with the answers of another source is refused.
    """

    def __init__(self, path: str | Path | None, source: str) -> None:
        self.answers: dict[bytes, np.ndarray] = {}  # by the bytes of the query
        self.sizes: tuple[int, int] | None = None  # numbers of a query and of an answer, once there is one
        self._path, self._source = None if path is None else Path(path), source
        if self._path is None:
            return
        try:
            self._lock = locked(self._path.with_name(f"{self._path.name}.lock"), f"file of answers {path}")
            content = self._path.read_bytes() if self._path.exists() else b""
        except OSError as error:
            raise ValueError(f"cannot use the file of answers {path}: {error.strerror or error}") from None
        if content:
            self._read(content)

    def _read(self, content: bytes) -> None:
        mark, *rest = content.split(b"\n", 2)
        if mark + b"\n" != _MARK or len(rest) < 2:
            raise ValueError(f"{self._path} is no file of answers of this version: name another one")
        try:
            card = json.loads(rest[0])
            source, inputs, outputs = str(card["source"]), int(card["inputs"]), int(card["outputs"])
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"the second line of {self._path} is damaged: name another file") from None
        if source != self._source:
            raise ValueError(
                f"{self._path} holds the answers of {source}, not of {self._source}: name another"
            )
        self.sizes = inputs, outputs
        size = 8 * (inputs + outputs)
        body = rest[1][: len(rest[1]) // size * size]
        for record in np.frombuffer(body).reshape(-1, inputs + outputs):
            self.answers[record[:inputs].tobytes()] = record[inputs:]
        if len(body) < len(rest[1]):
            assert self._path is not None
            write_atomically(self._path, _MARK + rest[0] + b"\n" + body)

    def write(self, X: Points, answers: Outputs) -> None:
        """Store answers, one per row of queries, on disk before they are used."""
        sizes = X.shape[1], answers.shape[1]
        if self.sizes is not None and sizes != self.sizes:
            raise ValueError(
                f"queries and answers of {sizes} numbers do not go with those before, of {self.sizes}"
            )
        X, answers = (np.ascontiguousarray(rows, dtype=np.float64) for rows in (X, answers))
        if self._path is not None:
            if self.sizes is None:
                card = {"source": self._source, "inputs": sizes[0], "outputs": sizes[1]}
                write_atomically(self._path, _MARK + json.dumps(card).encode() + b"\n")
            with self._path.open("ab") as file:
                file.write(np.column_stack([X, answers]).tobytes())
        self.sizes = sizes
        self.answers |= {row.tobytes(): answer for row, answer in zip(X, answers, strict=True)}


Box = Callable[[np.ndarray], np.ndarray]


def from_torch(module: Any, dtype: str = "float32") -> Box:
    """Make a box of a PyTorch module in evaluation mode, on the device of its weights.

    Parameters
    ----------
    module : torch.nn.Module
        The module. Each call leaves the modes of the module and of its parts as they were.
    dtype : str
        That of its weights.

    Returns
    -------
    callable
        The box.
    """
    import torch

    kind = getattr(torch, dtype)

    def box(X: np.ndarray) -> np.ndarray:
        held = next(iter([*module.parameters(), *module.buffers()]), None)
        modes = [(part, part.training) for part in module.modules()]
        module.eval()
        try:
            with torch.no_grad():
                inputs = torch.as_tensor(X, dtype=kind, device="cpu" if held is None else held.device)
                return module(inputs).cpu().double().numpy()
        finally:
            for part, mode in modes:
                part.training = mode

    return box


def from_onnx(path: str | Path) -> tuple[Box, int]:
    """Make a box of an ONNX file with one input (n, d) (extra ``onnx``).

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    tuple of callable and int
        The box and d.
    """
    import onnxruntime

    if not Path(path).is_file():
        raise ValueError(f"no ONNX file at {path}")
    try:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:
        raise ValueError(f"{path} cannot be read as ONNX: {' '.join(str(error).split())[:200]}") from None
    given = session.get_inputs()
    if len(given) != 1 or len(given[0].shape) != 2 or not isinstance(given[0].shape[1], int):
        raise ValueError(f"{path} must take one input of shape (n, d), got {[one.shape for one in given]}")
    kind = {"tensor(double)": np.float64, "tensor(float16)": np.float16}.get(given[0].type, np.float32)

    def box(X: np.ndarray) -> np.ndarray:
        return np.asarray(session.run(None, {given[0].name: X.astype(kind)})[0], float)

    return box, int(given[0].shape[1])


def from_sklearn(estimator: Any) -> tuple[Box, int]:
    """Make a box of a fitted scikit-learn estimator: its probabilities if it has them, else its predictions.

    Parameters
    ----------
    estimator : estimator
        A fitted regressor or classifier.

    Returns
    -------
    tuple of callable and int
        The box and its number of inputs.
    """
    if not hasattr(estimator, "n_features_in_"):
        raise ValueError(f"the {type(estimator).__name__} is not fitted: call fit first")
    predict = estimator.predict_proba if hasattr(estimator, "predict_proba") else estimator.predict
    return predict, int(estimator.n_features_in_)


class Endpoint:
    """A box behind HTTP: {"inputs": [[…], …]} is posted, {"outputs": […]} or a bare list comes back.

    A query is sent once, also by a later run with the same file of answers. A number that is null is missing;
    a reply of another form is a failure, never an answer.

    Parameters
    ----------
    url : str
        Where to post.
    book : str, Path or None
        File of answers of this url; None keeps them for this run only.
    batch : int
        Most rows of one request.
    rate : float, optional
        Most requests a second; None for no limit.
    retries : int
        How often a failed request is sent again, after 0.5, 1, 2, … seconds.
    timeout : float
        Seconds until a request has failed.
    headers : sequence of (str, str)
        Further headers, such as an access key.
    """

    def __init__(
        self,
        url: str,
        book: str | Path | None = None,
        batch: int = 1024,
        rate: float | None = None,
        retries: int = 5,
        timeout: float = 60.0,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        if not str(url).startswith(("http://", "https://")):
            raise ValueError(f"the url must begin with http:// or https://, got {url!r}")
        for name, value, least in (("batch", batch, 1), ("retries", retries, 0)):
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be a whole number from {least} on, got {value!r}")
        check_positive("rate", rate)
        check_positive("timeout", timeout)
        self.url, self.batch, self.retries, self.timeout = str(url), batch, retries, timeout
        self.headers = {"Content-Type": "application/json", **dict(headers)}
        self.asked, self._pause, self._last = 0, 0.0 if rate is None else 1.0 / rate, -np.inf
        self.book = AnswerBook(book, self.url)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        keys = [row.tobytes() for row in np.ascontiguousarray(X, dtype=np.float64)]
        known = self.book.answers
        open_ = list(dict.fromkeys(key for key in keys if key not in known))
        for begin in range(0, len(open_), self.batch):
            part = np.array([np.frombuffer(key) for key in open_[begin : begin + self.batch]])
            self.book.write(part, self._post(part))
        return np.array([known[key] for key in keys])

    def _post(self, X: np.ndarray) -> np.ndarray:
        body = json.dumps({"inputs": X.tolist()}).encode()
        for attempt in range(self.retries + 1):
            time.sleep(max(0.0, self._last + self._pause - time.monotonic()))
            self._last = time.monotonic()
            try:
                request = urllib.request.Request(self.url, body, self.headers)
                with urllib.request.urlopen(request, timeout=self.timeout) as reply:
                    answer = json.loads(reply.read())
                break
            # A reply cut short, no HTTP, no text or no JSON is a connection that failed: it may do better.
            except (OSError, HTTPException, UnicodeDecodeError, json.JSONDecodeError) as error:
                status = error.code if isinstance(error, urllib.error.HTTPError) else 500
                refused = 400 <= status < 500 and status != 429
                if refused or attempt == self.retries:
                    raise ConnectionError(f"{self.url} did not answer: {error}") from None
                time.sleep(0.5 * 2**attempt)
        self.asked += len(X)
        return self._rows(answer, X)

    def _rows(self, answer: object, X: np.ndarray) -> np.ndarray:
        """The outputs of a reply, one row a query; a reply of another form is a failed connection."""
        outputs = answer.get("outputs") if isinstance(answer, dict) else answer
        try:
            rows = np.asarray(outputs, dtype=float)
        except (TypeError, ValueError):
            rows = np.zeros(())
        if rows.ndim not in (1, 2) or len(rows) != len(X) or rows.size == 0:
            raise ConnectionError(
                f'{self.url} must reply {{"outputs": rows}} with a row of numbers for each of {len(X)} '
                f"queries, got {json.dumps(answer)[:80]}"
            )
        rows = rows.reshape(len(X), -1)
        before, now = self.book.sizes, rows.shape[1]
        if before is not None and before[1] != now:
            raise ConnectionError(f"{self.url} returned {before[1]} outputs at first and {now} later")
        return rows
