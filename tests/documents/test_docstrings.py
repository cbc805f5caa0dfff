"""Docstrings of public names are numpydoc: every parameter is there, with its type."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import operator

import pytest
from numpydoc.docscrape import ClassDoc
from numpydoc.validate import validate

import onehidden as oh

# What numpydoc calls them: a summary in one line with a full stop; all parameters and no others, in order,
# with types and descriptions; returned values likewise; sections in the order of the format.
RULES = {"GL07", "GL08", "SS01", "SS03", "PR01", "PR02", "PR03", "PR04", "PR07", "PR10", "RT01", "RT03"}
ROOMS = (
    "data",
    "families",
    "laws",
    "moments",
    "objectives",
    "lab",
    "problems",
    "scores",
    "starts",
    "structure",
)


def public_names():
    """Dotted names of the functions and classes that users call."""
    for name in oh.__all__:
        if not inspect.ismodule(getattr(oh, name)):
            yield f"onehidden.{name}"
    for room in ROOMS:
        module = importlib.import_module(getattr(oh, room).__name__)
        for name in getattr(module, "__all__", ()):
            if callable(getattr(module, name)):
                yield f"{module.__name__}.{name}"


METHODS = {
    "OneHiddenNet": "predict canonical one_output save load to_onnx to_torch to_sklearn",
    "Recovery": ("predict predict_interval interval input_test summary to_frame to_dict save report"),
    "OneHiddenRegressor": "fit predict get_params",
    "OneHiddenClassifier": "fit predict predict_proba decision_function",
    "laws.Law": "sample log_density score contract",
    "moments.MomentPass": "update merge result",
    "moments.ScoreMoments": "standard_error signal",
    "activations.Activation": "derivative hermite rho properties",
    "objectives.Objective": "value gradient population",
    "problems.Problem": "teacher sample",
}


def resolve(name):
    """Function or class of a dotted name."""
    package, _, inside = name.partition(".")
    return operator.attrgetter(inside)(importlib.import_module(package))


def documented_fields(found):
    """Names under Attributes of a class that users read and do not construct, which has no Parameters."""
    if not inspect.isclass(found):
        return None
    sections = ClassDoc(found, config={"show_class_members": False})
    if sections["Parameters"] or not sections["Attributes"]:
        return None
    return {name.strip() for entry in sections["Attributes"] for name in entry.name.split(",")}


@pytest.mark.parametrize("name", sorted(public_names()))
def test_a_public_docstring_is_numpydoc(name):
    found, described = resolve(name), documented_fields(resolve(name))
    read_only = described is not None
    report = validate(name)
    wrong = [text for code, text in report["errors"] if code in RULES - ({"PR01"} if read_only else set())]
    assert not wrong, f"{report['file']}:{report['file_line']}"
    if read_only and dataclasses.is_dataclass(found):
        public = {one.name for one in dataclasses.fields(found) if not one.name.startswith("_")}
        assert public <= described, name


@pytest.mark.parametrize(
    ("owner", "name"), [(key, one) for key, names in METHODS.items() for one in names.split()]
)
def test_a_public_method_is_numpydoc(owner, name):
    report = validate(f"onehidden.{owner}.{name}")
    assert not [text for code, text in report["errors"] if code in RULES], (
        f"{report['file']}:{report['file_line']}"
    )


def test_a_parameter_without_its_type_is_seen():
    """What must fail."""

    def bare(x):
        """Return x.

        Parameters
        ----------
        x
            The number.
        """
        return x

    bare.__module__, globals()["bare"] = __name__, bare
    codes = {code for code, _ in validate(f"{__name__}.bare")["errors"]}
    assert {"PR04", "RT01"} <= codes & RULES


EXAMPLES = (
    "recover", "recover_oracle", "match", "load_recovery", "OneHiddenNet", "OneHiddenRegressor",
    "OneHiddenClassifier", "activations.get", "families.get", "laws.GaussianMixture",
    "scores.LocalLikelihood", "scores.select", "moments.score_moments", "objectives.GaussianDesigned",
    "problems.get", "data.open", "starts.Random", "starts.DifferenceMap",
)  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_gives_what_it_shows(name):
    text = inspect.getdoc(resolve(f"onehidden.{name}"))
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert example.examples, "the docstring has no example"
    assert "+SKIP" not in text
    told = []
    doctest.DocTestRunner(verbose=False).run(example, out=told.append)
    assert not told, "".join(told)
