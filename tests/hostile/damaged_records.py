"""Models, records and checkpoints that were altered, and arguments that ask for what is not to be had."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from hostile.case import Case
from safetensors.numpy import save_file


def models(rng: random.Random) -> Iterator[Case]:
    """Models altered by a byte, cut, or of something else."""
    for number in range(24):
        share, bit = rng.random(), 1 << rng.randrange(8)
        run = number % 2 == 0

        def make(folder: Path, share: float = share, bit: int = bit, run: bool = run) -> None:
            path = folder / ("run/model.safetensors" if run else "m.safetensors")
            content = bytearray(path.read_bytes())
            content[int(share * len(content))] ^= bit
            path.write_bytes(bytes(content))

        model = "run" if run else "m.safetensors"
        arguments = ("predict", model, "t.csv", "--columns", "a,b,c")
        yield Case(f"model byte {share:.3f}", ("check", "run") if run and number % 4 else arguments, make)
    for _ in range(6):
        share = rng.random()

        def make(folder: Path, share: float = share) -> None:
            path = folder / "m.safetensors"
            path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])

        yield Case(
            f"model cut {share:.3f}", ("predict", "m.safetensors", "t.csv", "--columns", "a,b,c"), make
        )
    tensors = {"weights": np.ones((1, 3)), "bias": np.ones(1), "output": np.ones(1), "intercept": np.ones(1)}
    for name, changed, header in (
        ("lacks a tensor", {"bias": None}, {"format_version": 1, "activation": "relu"}),
        ("shape", {"bias": np.ones(4)}, {"format_version": 1, "activation": "relu"}),
        ("nan", {"weights": np.full((1, 3), np.nan)}, {"format_version": 1, "activation": "relu"}),
        ("complex", {"weights": np.ones((1, 3), np.complex64)}, {"format_version": 1, "activation": "relu"}),
        ("unknown activation", {}, {"format_version": 1, "activation": "\x1b[31m"}),
        ("header is a list", {}, [1]),
        ("later format", {}, {"format_version": 10**30, "activation": "relu"}),
    ):

        def make(folder: Path, changed: dict = changed, header: object = header) -> None:
            held = {k: v for k, v in {**tensors, **changed}.items() if v is not None}
            save_file(held, folder / "m.safetensors", metadata={"onehidden": json.dumps(header)})

        yield Case(f"model: {name}", ("predict", "m.safetensors", "t.csv", "--columns", "a,b,c"), make)
    for name, change in (
        ("empty", lambda text: ""), ("a list", lambda text: "[]"),
        ("cut", lambda text: text[: len(text) // 2]), ("nested", lambda text: "[" * 100_000),
        ("bytes", lambda text: "\x00\xff"),
        ("names", lambda text: text.replace('"feature_names": [', '"feature_names": ["z", ')),
        ("status", lambda text: text.replace('"status": "consistent"', '"status": "great"')),
        ("a digit", lambda text: text.replace('"n_samples": ', '"n_samples": 1', 1)),
        ("weights", lambda text: text.replace('"weights": [', '"weights": [[9.0, 9.0, 9.0], ', 1)),
    ):  # fmt: skip

        def make(folder: Path, change: Callable[[str], str] = change) -> None:
            path = folder / "run" / "recovery.json"
            path.write_text(change(path.read_text()), encoding="latin-1")

        arguments = rng.choice(
            (("check", "run"), ("report", "run", "--out", "new.html"), ("predict", "run", "t.csv"))
        )
        yield Case(f"record: {name}", arguments, make)


def checkpoints(rng: random.Random) -> Iterator[Case]:
    """Checkpoints altered by a byte, cut or of something else: ``kept`` belongs to t.csv."""
    arguments = ("recover", "t.csv", "--hidden", "1", "--out", "new", "--checkpoint", "kept")
    for number in range(10):
        share, bit = rng.random(), 1 << rng.randrange(8)

        def make(folder: Path, share: float = share, bit: int = bit, cut: bool = number > 7) -> None:
            files = sorted((folder / "kept").rglob("*.step"))
            for path in files:  # which of them a run reads first is its own affair
                content = bytearray(path.read_bytes())
                content[int(share * len(content))] ^= bit
                path.write_bytes(bytes(content[: len(content) // 2] if cut else content))

        yield Case(f"checkpoint byte {share:.3f}", arguments, make, cheap=False, kept=True)
    for name, text in (
        ("empty", ""), ("a list", "[]"), ("cut", '{"format_version": 4,'), ("other", '{"format_version": 4}'),
        ("options", None),
    ):  # fmt: skip

        def make(folder: Path, text: str | None = text) -> None:
            path = folder / "kept" / "checkpoint.json"
            changed = json.dumps({**json.loads(path.read_text()), "options": 3}) if text is None else text
            path.write_text(changed)

        yield Case(f"checkpoint card {name}", arguments, make, cheap=False, kept=True)


def requests(rng: random.Random) -> Iterator[Case]:
    """Arguments that ask for what is not to be had."""
    nothing: Callable[[Path], None] = lambda folder: None  # noqa: E731
    junk = ["", "-1", "nan", "1e999", "\x1b[31m", "<b>", "a" * 5000, "💥", "None", "../../..", "%s%n"]
    for option in (
        "--target", "--hidden", "--activation", "--start", "--score", "--errors", "--seed", "--columns",
        "--drop", "--encoding", "--decimal", "--weight", "--nulls",
    ):  # fmt: skip
        value = rng.choice(junk)
        value = "x" + value if option in ("--columns", "--encoding", "--weight") else value
        yield Case(f"{option} {value[:20]!r}", ("recover", "t.csv", option, value, "--out", "new"), nothing)
    for arguments in (
        ("recover", "t.csv", "--out", "/dev/full"), ("recover", "t.csv", "--out", "t.csv/new"),
        ("recover", "/dev/null", "--out", "new"), ("recover", "/dev/zero", "--out", "new"),
        ("recover", "pipe", "--out", "new"), ("recover", "loop", "--out", "new"),
        ("predict", "run", "t.csv", "--out", "/dev/full"), ("predict", "run", "t.csv", "--out", "t.csv"),
        ("predict", "run", "t.csv", "--out", "run"), ("recover", "t.csv", "--out", "run"),
        ("recover", "t.csv", "--checkpoint", "t.csv", "--out", "new"),
        ("recover", "t.csv", "--checkpoint", "/proc/kept", "--out", "new"),
        ("recover", "x" * 5000, "--out", "new"), ("report", "run", "--out", "new.exe"),
    ):  # fmt: skip

        def make(folder: Path) -> None:
            os.mkfifo(folder / "pipe")
            (folder / "loop").symlink_to("loop")

        yield Case(" ".join(arguments)[:60], arguments, make)
