"""Boxes that people have, as functions of an (n, d) array: PyTorch, ONNX files, scikit-learn, endpoints."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np

from onehidden.options import check_positive, check_whole
from onehidden.oracle.domain import Outputs, Points

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
        SQLite file of answers of this url; None keeps them for this run only.
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
        check_whole("batch", batch)
        check_whole("retries", retries, 0)
        check_positive("rate", rate)
        check_positive("timeout", timeout)
        self.url, self.batch, self.retries, self.timeout = str(url), batch, retries, timeout
        self.headers = {"Content-Type": "application/json", **dict(headers)}
        self.asked, self._pause, self._last = 0, 0.0 if rate is None else 1.0 / rate, -np.inf
        self._book = _book(book, self.url)
        first = self._book.execute("SELECT answer FROM answers LIMIT 1").fetchone()
        self._outputs = 0 if first is None else len(first[0]) // 8

    def __call__(self, X: np.ndarray) -> np.ndarray:
        X = np.ascontiguousarray(X, dtype=np.float64)
        keys = [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in X]
        rows = {key: i for i, key in enumerate(keys)}
        find = "SELECT answer FROM answers WHERE query = ?"
        found = {key: self._book.execute(find, (key,)).fetchone() for key in rows}
        known = {key: np.frombuffer(row[0]) for key, row in found.items() if row is not None}
        open_ = [key for key in rows if key not in known]
        for begin in range(0, len(open_), self.batch):
            part = open_[begin : begin + self.batch]
            answers = dict(zip(part, self._post(X[[rows[key] for key in part]]), strict=True))
            with self._book:  # on disk before they are used
                values = ((key, answer.tobytes()) for key, answer in answers.items())
                self._book.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?)", values)
            known |= answers
        return np.array([known[key] for key in keys])

    def _post(self, X: Points) -> Outputs:
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
        outputs = answer.get("outputs") if isinstance(answer, dict) else answer
        try:
            rows = np.asarray(outputs, dtype=float).reshape(len(X), -1)
            if rows.size == 0 or rows.shape[1] != (self._outputs or rows.shape[1]):
                raise ValueError
        except (TypeError, ValueError):
            raise ConnectionError(
                f'{self.url} must reply {{"outputs": rows}} with a row of {self._outputs or "some"} numbers '
                f"for each of {len(X)} queries, got {json.dumps(answer)[:80]}"
            ) from None
        self._outputs = rows.shape[1]
        return rows


def _book(path: str | Path | None, source: str) -> sqlite3.Connection:
    """Answers by the digest of their query; a last write that a crash cut short is undone."""
    book = sqlite3.connect(":memory:" if path is None else path, check_same_thread=False)
    try:
        with book:
            book.execute("CREATE TABLE IF NOT EXISTS source (url TEXT PRIMARY KEY)")
            book.execute("CREATE TABLE IF NOT EXISTS answers (query BLOB PRIMARY KEY, answer BLOB)")
            found = book.execute("SELECT url FROM source").fetchone() or (source,)
            book.execute("INSERT OR IGNORE INTO source VALUES (?)", found)
    except sqlite3.Error as error:
        raise ValueError(f"cannot use the file of answers {path}: {error}; name another one") from None
    if found[0] != source:
        raise ValueError(f"{path} holds the answers of {found[0]}, not of {source}: name another")
    return book
