"""Ctrl-C in a long command: the first ends the search as a spent budget does, the second ends the program."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click


@contextmanager
def gentle() -> Iterator[threading.Event]:
    """A scope whose runs end with the best answer so far on Ctrl-C; the event tells whether that happened."""
    from onehidden.run import stoppable

    with stoppable() as stop:
        if threading.current_thread() is not threading.main_thread():
            yield stop
            return

        def hear(number: int, frame: FrameType | None) -> None:
            if stop.is_set():
                raise KeyboardInterrupt
            stop.set()
            click.echo(
                "\nstopping: the best answer so far is being finished (Ctrl-C again leaves at once)", err=True
            )

        before = signal.signal(signal.SIGINT, hear)
        try:
            yield stop
        finally:
            signal.signal(signal.SIGINT, before)
