"""Answers written down as they come: a question is asked once, and a broken connection loses nothing."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

_MARK = b"onehidden answers 1\n"


class AnswerBook:
    """Answers by question, in memory and, with a path, in a file that grows record by record.

    A record is (length of the question, length of the answer, question, answer), lengths as 4 bytes, the rest
    float64. A last record that was cut short by a crash is dropped.
    """

    def __init__(self, path: str | Path | None) -> None:
        self._known: dict[bytes, np.ndarray] = {}
        self._path = None if path is None else Path(path)
        if self._path is None:
            return
        content = self._path.read_bytes() if self._path.is_file() else b""
        if content and not content.startswith(_MARK):
            raise ValueError(f"{path} is no file of answers: name another one")
        whole = content[: self._read(content)] or _MARK
        if whole != content:
            self._path.write_bytes(whole)

    def _read(self, content: bytes) -> int:
        at = min(len(_MARK), len(content))
        while at + 8 <= len(content):
            question, answer = struct.unpack_from("<II", content, at)
            stop = at + 8 + question + answer
            if stop > len(content):
                break
            middle = at + 8 + question
            self._known[content[at + 8 : middle]] = np.frombuffer(content[middle:stop])
            at = stop
        return at

    def __contains__(self, key: bytes) -> bool:
        return key in self._known

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, key: bytes) -> np.ndarray:
        return self._known[key]

    def write(self, keys: list[bytes], answers: np.ndarray) -> None:
        """Remember answers, one a key, on disk before they are used."""
        rows = np.ascontiguousarray(answers.reshape(len(keys), -1), dtype=np.float64)
        self._known |= dict(zip(keys, rows, strict=True))
        if self._path is None:
            return
        with self._path.open("ab") as file:
            for key, row in zip(keys, rows, strict=True):
                told = row.tobytes()
                file.write(struct.pack("<II", len(key), len(told)) + key + told)
