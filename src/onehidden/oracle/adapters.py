"""Boxes that people have, as functions of an (n, d) array: PyTorch, ONNX files, scikit-learn, endpoints."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from onehidden.oracle.answer_book import AnswerBook

Box = Callable[[np.ndarray], np.ndarray]


def from_torch(module: Any, dtype: str = "float32") -> Box:
    """A PyTorch module in evaluation mode; ``dtype`` is that of its weights."""
    import torch

    kind = getattr(torch, dtype)
    module.eval()

    def box(X: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return module(torch.as_tensor(X, dtype=kind)).double().numpy()

    return box


def from_onnx(path: str | Path) -> tuple[Box, int]:
    """An ONNX file with one input (n, d), and d (extra ``onnx``)."""
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
    """A fitted scikit-learn estimator: its probabilities where it has them, else what it predicts; and d."""
    if not hasattr(estimator, "n_features_in_"):
        raise ValueError(f"the {type(estimator).__name__} is not fitted: call fit first")
    ask = estimator.predict_proba if hasattr(estimator, "predict_proba") else estimator.predict
    return ask, int(estimator.n_features_in_)


class Endpoint:
    """A box behind HTTP: {"inputs": [[…], …]} is posted, {"outputs": […]} or a bare list comes back.

    Answers are written down as they come: a question is asked of the endpoint once, also by a later run.

    Parameters
    ----------
    url : where to post.
    book : file of answers; None keeps them for this run only.
    batch : most rows of one request.
    rate : most requests a second; None for no limit.
    retries : how often a request that failed is sent again, after 0.5, 1, 2, … seconds.
    headers : further headers, as a key of access.
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
        self.url, self.batch, self.retries, self.timeout = str(url), batch, retries, timeout
        self.headers = {"Content-Type": "application/json", **dict(headers)}
        self.asked, self._pause, self._last = 0, 0.0 if rate is None else 1.0 / rate, -np.inf
        self.book = AnswerBook(book)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        keys = [row.tobytes() for row in np.ascontiguousarray(X, dtype=np.float64)]
        open_ = list(dict.fromkeys(key for key in keys if key not in self.book))
        for begin in range(0, len(open_), self.batch):
            part = open_[begin : begin + self.batch]
            self.book.write(part, self._post(np.array([np.frombuffer(key) for key in part])))
        return np.array([self.book[key] for key in keys])

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
            except (urllib.error.URLError, ConnectionError, TimeoutError, json.JSONDecodeError) as error:
                refused = (
                    isinstance(error, urllib.error.HTTPError)
                    and 400 <= error.code < 500
                    and error.code != 429
                )
                if refused or attempt == self.retries:
                    raise ConnectionError(f"{self.url} did not answer: {error}") from None
                time.sleep(0.5 * 2**attempt)
        self.asked += len(X)
        rows = np.asarray(answer["outputs"] if isinstance(answer, dict) else answer, dtype=float)
        if rows.ndim not in (1, 2) or len(rows) != len(X):
            raise ValueError(f"{self.url} returned {rows.shape} for {len(X)} questions")
        return rows
