"""Answers written down as they come: a question is asked once, and a broken connection loses nothing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from jaxtyping import Float

from onehidden.journal import locked
from onehidden.whole import write_whole

_MARK = b"onehidden answers 2\n"


class AnswerBook:
    """Answers by question, in memory and, with a path, in a file that grows record by record.

    The file is a line of its kind, a line of JSON (whose answers they are, how many inputs and outputs) and
    records of that many float64 each, question and answer. A last record that was cut short by a crash is
    dropped. One process at a time has the file.

    Parameters
    ----------
    path : the file; None keeps answers in memory only.
    source : who answers; a file with the answers of another is refused.
    """

    def __init__(self, path: str | Path | None, source: str) -> None:
        self._known: dict[bytes, np.ndarray] = {}
        self._path, self._source = None if path is None else Path(path), source
        self._sizes: tuple[int, int] | None = None
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
        self._sizes = inputs, outputs
        size = 8 * (inputs + outputs)
        body = rest[1][: len(rest[1]) // size * size]
        for record in np.frombuffer(body).reshape(-1, inputs + outputs):
            self._known[record[:inputs].tobytes()] = record[inputs:]
        if len(body) < len(rest[1]):
            assert self._path is not None
            write_whole(self._path, _MARK + rest[0] + b"\n" + body)

    def __contains__(self, key: bytes) -> bool:
        return key in self._known

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, key: bytes) -> np.ndarray:
        return self._known[key]

    @property
    def sizes(self) -> tuple[int, int] | None:
        """Numbers of a question and of an answer; None before the first."""
        return self._sizes

    def write(self, X: Float[np.ndarray, "n d"], answers: Float[np.ndarray, "n q"]) -> None:
        """Remember answers, one a row of questions, on disk before they are used."""
        sizes = X.shape[1], answers.shape[1]
        if self._sizes is not None and sizes != self._sizes:
            raise ValueError(
                f"questions and answers of {sizes} numbers do not go with those before, of {self._sizes}"
            )
        X, answers = (np.ascontiguousarray(rows, dtype=np.float64) for rows in (X, answers))
        if self._path is not None:
            if self._sizes is None:
                card = {"source": self._source, "inputs": sizes[0], "outputs": sizes[1]}
                write_whole(self._path, _MARK + json.dumps(card).encode() + b"\n")
            with self._path.open("ab") as file:
                file.write(np.column_stack([X, answers]).tobytes())
        self._sizes = sizes
        self._known |= {row.tobytes(): answer for row, answer in zip(X, answers, strict=True)}
