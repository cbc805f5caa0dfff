"""One table of options: every signature, docstring and flag follows it."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import fields

import numpy as np
import pytest

import onehidden as oh
from onehidden.cli.oracle import command as oracle_command
from onehidden.cli.recover import command as recover_command
from onehidden.options import Options, estimator_name

FIELDS = {one.name: one for one in fields(Options)}
ESTIMATORS = {estimator_name(one): one for one in fields(Options)}


@pytest.mark.parametrize(
    "function", [oh.recover, oh.recover_oracle, oh.OneHiddenRegressor, oh.OneHiddenClassifier]
)
def test_signatures_and_docstrings_are_those_of_the_options(function):
    named = ESTIMATORS if inspect.isclass(function) else FIELDS
    taken = {name: one for name, one in inspect.signature(function).parameters.items() if name in named}
    for name, one in taken.items():
        if name != "random_state":
            assert one.default == named[name].default
        assert f"\n{name} : " in function.__doc__
        assert named[name].metadata["text"] in function.__doc__
    assert "**options" not in function.__doc__
    if function is oh.recover:
        assert taken.keys() == FIELDS.keys()
        assert {name: one.annotation for name, one in taken.items()} == {n: f.type for n, f in FIELDS.items()}
    elif function is oh.recover_oracle:
        assert taken.keys() == {name for name, one in FIELDS.items() if one.metadata["oracle"]}


@pytest.mark.parametrize(("command", "kept"), [(recover_command, "flag"), (oracle_command, "oracle")])
def test_flags_are_those_of_the_options(command, kept):
    typed = {one.name: one for one in command.params}
    for name, one in FIELDS.items():
        if one.metadata["flag"] and one.metadata[kept]:
            assert typed[name].help == one.metadata["text"]
            assert typed[name].default == one.default
        else:
            assert name not in typed


def test_numbers_of_numpy_become_plain():
    options = Options(hidden=np.int64(3), seed=np.uint8(2), bias=np.bool_(False))
    assert [type(value) for value in (options.hidden, options.seed, options.bias)] == [int, int, bool]
    assert Options(**options.arguments()) == options


def test_the_record_holds_plain_values():
    import json

    options = Options(hidden=2, family=oh.families.Poisson("log"), start=[oh.starts.Random(), "wide"])
    plain = options.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert (plain["family"], plain["link"], plain["start"]) == ("poisson", "log", "random, wide")
    assert options.checkpoint_key(3) != Options(**{**options.arguments(), "seed": 1}).checkpoint_key(3)


def test_a_checkpoint_knows_a_start_by_its_fields():
    def key(start):
        return Options(start=start).checkpoint_key(3)["start"]

    assert key(oh.starts.Random(3)) == key(oh.starts.Random(3))
    assert key(oh.starts.Random(3)) != key(oh.starts.Random(4))
    assert key([oh.starts.Random(3), "wide"]) != key("wide")


def test_importing_options_for_help_brings_no_jax():
    code = "import sys, onehidden.options; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
