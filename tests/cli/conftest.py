"""What every test of the commands runs under: figures drawn, and written out only where a test asks."""

from __future__ import annotations

import contextlib

import pytest
from helpers import sketched


@pytest.fixture(autouse=True)
def _sketches(request):
    """Pages hold sketches, unless a test takes the fixture ``pictures``."""
    with contextlib.nullcontext() if "pictures" in request.fixturenames else sketched():
        yield


@pytest.fixture
def pictures():
    """Pages hold the pictures that a reader would see."""
