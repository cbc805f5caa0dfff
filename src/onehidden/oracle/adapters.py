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

from onehidden.oracle.answer_book import AnswerBook
from onehidden.recovery.options import check_positive

Box = Callable[[np.ndarray], np.ndarray]


def from_torch(module: Any, dtype: str = "float32") -> Box:
    """A PyTorch module, asked in evaluation mode and where it lies; ``dtype`` is that of its weights.

    Each call leaves the modes of the module and of its parts as they were.
    """
    import torch

    kind = getattr(torch, dtype)

    def box(X: np.ndarray) -> np.ndarray:
        held = next(iter([*module.parameters(), *module.buffers()]), None)
        modes = [(part, part.training) for part in module.modules()]
        module.eval()
        try:
            with torch.no_grad():
                asked = torch.as_tensor(X, dtype=kind, device="cpu" if held is None else held.device)
                return module(asked).cpu().double().numpy()
        finally:
            for part, mode in modes:
                part.training = mode

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

    Answers are written down as they come: a question is asked of the endpoint once, also by a later run. A
    number that is null is one it does not have; a reply of another form is a failure, never an answer.

    Parameters
    ----------
    url : where to post.
    book : file of answers of this url; None keeps them for this run only.
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
        if not isinstance(batch, (int, np.integer)) or isinstance(batch, bool) or batch < 1:
            raise ValueError(f"batch must be a whole number from 1 on, got {batch!r}")
        if not isinstance(retries, (int, np.integer)) or isinstance(retries, bool) or retries < 0:
            raise ValueError(f"retries must be a whole number from 0 on, got {retries!r}")
        check_positive("rate", rate)
        check_positive("timeout", timeout)
        self.url, self.batch, self.retries, self.timeout = str(url), batch, retries, timeout
        self.headers = {"Content-Type": "application/json", **dict(headers)}
        self.asked, self._pause, self._last = 0, 0.0 if rate is None else 1.0 / rate, -np.inf
        self.book = AnswerBook(book, self.url)

    def __call__(self, X: np.ndarray) -> np.ndarray:
        keys = [row.tobytes() for row in np.ascontiguousarray(X, dtype=np.float64)]
        open_ = list(dict.fromkeys(key for key in keys if key not in self.book))
        for begin in range(0, len(open_), self.batch):
            part = np.array([np.frombuffer(key) for key in open_[begin : begin + self.batch]])
            self.book.write(part, self._post(part))
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
            # A reply cut short, no HTTP, no text or no JSON is a connection that failed: it may do better.
            except (OSError, HTTPException, UnicodeDecodeError, json.JSONDecodeError) as error:
                refused = (
                    isinstance(error, urllib.error.HTTPError)
                    and 400 <= error.code < 500
                    and error.code != 429
                )
                if refused or attempt == self.retries:
                    raise ConnectionError(f"{self.url} did not answer: {error}") from None
                time.sleep(0.5 * 2**attempt)
        self.asked += len(X)
        return self._rows(answer, X)

    def _rows(self, answer: object, X: np.ndarray) -> np.ndarray:
        """The outputs of a reply, one row a question; what is none says nothing about the questions."""
        told = answer.get("outputs") if isinstance(answer, dict) else answer
        try:
            rows = np.asarray(told, dtype=float)
        except (TypeError, ValueError):
            rows = np.zeros(())
        if rows.ndim not in (1, 2) or len(rows) != len(X) or rows.size == 0:
            raise ConnectionError(
                f'{self.url} must reply {{"outputs": rows}} with a row of numbers for each of {len(X)} '
                f"questions, got {json.dumps(answer)[:80]}"
            )
        rows = rows.reshape(len(X), -1)
        before = self.book.sizes
        if before is not None and before[1] != rows.shape[1]:
            raise ConnectionError(
                f"{self.url} returned {before[1]} outputs at first and {rows.shape[1]} later"
            )
        return rows
