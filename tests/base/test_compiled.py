"""Compiled programs kept on disk: found again by another process, and a cache of the caller is left alone."""

import os
import shutil
import subprocess
import sys

import pytest

from onehidden.machine import VARIABLE

PROGRAM = """
import jax, jax.numpy as jnp
from onehidden.machine import keep_programs

@jax.jit
def program(x):
    for _ in range(40):
        x = jnp.sin(x) @ jnp.cos(x).T
    return x

seen = []
jax.monitoring.register_event_listener(lambda event, **_: seen.append(event))
keep_programs()
program(jnp.ones((7, 7))).block_until_ready()
print(sum(event.endswith("cache_hits") for event in seen), jax.config.jax_compilation_cache_dir)
"""


# One that was there before another process compiled anything.
EARLIER = f"""
import subprocess, sys
from onehidden.machine import keep_programs
keep_programs()
subprocess.run([sys.executable, "-c", {PROGRAM!r}], check=True, stdout=subprocess.DEVNULL)
{PROGRAM}
"""


def hits(folder, program=PROGRAM):
    env = os.environ | {VARIABLE: str(folder), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
    )
    found, setting = done.stdout.split()
    return int(found), setting


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The folder that one process leaves behind, and what it said."""
    folder = tmp_path_factory.mktemp("first")
    return folder, hits(folder)


@pytest.fixture
def compiled(first, tmp_path):
    """A copy of that folder, of this test alone."""
    return shutil.copytree(first[0], tmp_path / "compiled")


def test_second_process_finds_what_the_first_compiled(first, compiled):
    assert first[1][0] == 0
    assert first[1][1].startswith(str(first[0]))
    assert list(compiled.glob("compiled-*/*"))
    assert hits(compiled)[0] > 0


def test_processes_side_by_side_share_what_they_compile(tmp_path):
    assert hits(tmp_path, EARLIER)[0] > 0


def test_half_a_program_of_a_killed_process_is_not_read(compiled):
    folder = next(compiled.glob("compiled-*"))
    for entry in folder.iterdir():  # what a process had begun to write when it was killed
        (folder / f"writing-999999999-{entry.name}").write_bytes(entry.read_bytes()[:10])
        entry.unlink()
    assert hits(compiled)[0] == 0
    assert hits(compiled)[0] > 0


def test_off_means_off():
    assert hits("off") == (0, "None")
    assert not os.path.exists("off")


def test_a_cache_of_the_caller_is_left_alone(tmp_path):
    own = f"import jax; jax.config.update('jax_compilation_cache_dir', {str(tmp_path / 'own')!r})\n"
    assert hits(tmp_path, own + PROGRAM)[1] == str(tmp_path / "own")


def test_a_full_folder_keeps_the_newest_programs(compiled):
    folder = next(compiled.glob("compiled-*"))
    kept = {path.name for path in folder.iterdir()}
    assert kept
    for i in range(3100):
        old = folder / f"{i}-cache"
        old.touch()
        os.utime(old, (i, i))
    assert hits(compiled)[0] > 0
    left = {path.name for path in folder.iterdir()}
    assert kept <= left
    assert "3099-cache" in left
    assert "0-cache" not in left
    assert len(left) <= 3000
