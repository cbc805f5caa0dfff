"""Options: one dataclass, from which everything that takes them is made.

A field is an option. Its annotation, default and metadata give the parameter and its description in
``recover``, ``recover_oracle`` and the estimators, the flag of the commands, and what the record keeps. The
heavy parts of the library are imported when values are checked, so that ``--help`` stays fast.
"""

# ruff: noqa: RUF009
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeVar

from onehidden.refused import meant
from onehidden.starts import REGISTRY, RENAMED

if TYPE_CHECKING:
    from onehidden.activations import Activation
    from onehidden.families import Family
    from onehidden.fit.parametrisation import Parametrisation
    from onehidden.run import Progress
    from onehidden.starts.candidate import Start
    from onehidden.structure import Structure, Structures
    from onehidden_papers.laws.base import Score

T = TypeVar("T", bound=Callable[..., Any])
SCORES = ("auto", "gaussian")
STRUCTURES = ("nonnegative", "sparse")  # the names of ``structure.NAMES``, likewise


def _activations() -> tuple[str, ...]:
    from onehidden import activations

    return ("auto", *activations.names())


def _starts() -> tuple[str, ...]:
    return ("auto", *REGISTRY, *RENAMED)


def _families() -> tuple[str, ...]:
    from onehidden import families

    return tuple(families.names())


def _errors() -> tuple[str, ...]:
    from onehidden.certify.errors import ERRORS

    return ERRORS


def _whole(value: Any, least: int) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _is_limit(value: Any) -> bool:
    """Whether a value is a positive number or None."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    return value is None or (number and 0 < float(value) < float("inf"))


def check_positive(name: str, value: object) -> None:
    """Refuse what is neither a positive number nor None."""
    if not _is_limit(value):
        raise ValueError(f"{name} must be a positive number or None, got {value!r}")


def check_whole(name: str, value: object, least: int = 1) -> None:
    """Refuse what is no whole number from ``least`` on."""
    if not _whole(value, least):
        raise ValueError(f"{name} must be a whole number from {least} on, got {value!r}")


def _is_start(value: object) -> bool:
    from onehidden.starts.candidate import Start

    if isinstance(value, list | tuple):
        return len(value) > 0 and all(map(_is_start, value))
    ready = isinstance(value, Start) and not isinstance(value, type)
    return ready or (isinstance(value, str) and value in _starts())


def _is_score(value: object) -> bool:
    return value in SCORES if isinstance(value, str) else callable(getattr(value, "score", None))


Must = tuple[str | Callable[[], str], Callable[[Any], bool]]  # what a value must be, and whether it is
_FLAG: Must = "True or False", lambda value: isinstance(value, bool)


def option(
    default: Any,
    text: str,  # what it does, for the docstrings and for the help of the commands
    *,
    must: Must | None = None,  # what a value must be; None where it is checked elsewhere
    python: str = "",  # what more there is to say in Python
    estimator: str | None = None,  # what the estimators call it, if not by its own name
    oracle: bool = False,  # whether ``recover_oracle`` and its command take it
    flag: bool = True,  # whether it can be typed, and is kept in the record
    names: Callable[[], tuple[str, ...]] | None = None,  # the names that it takes, for tab completion
) -> Any:
    """Declare an option: a field with metadata."""
    more = dict(text=text, must=must, python=python, estimator=estimator, oracle=oracle, flag=flag)
    return field(default=default, repr=flag, metadata=more | {"names": names})


@dataclass(frozen=True)
class Options:
    """The choices of a recovery, checked.

    Parameters
    ----------
    **options : Options
        One field each.

    Raises
    ------
    ValueError
        One sentence, where a value cannot be.
    """

    hidden: int | None = option(
        None,
        "Number of units k; chosen from the data if not given.",
        must=("a whole number of at least 1 or None", lambda value: value is None or _whole(value, 1)),
        estimator="n_hidden",
        oracle=True,
    )
    activation: str | Activation = option(
        "relu",
        "Activation g of the units, by name; auto chooses it by held-out likelihood.",
        python="Or one of ``oh.activations``, or any function that JAX can trace.",
        oracle=True,
        names=_activations,
    )
    bias: bool = option(True, "Whether the hidden biases b_i are free, else zero.", must=_FLAG, oracle=True)
    intercept: bool = option(True, "Whether the constant c is free, else zero.", must=_FLAG, oracle=True)
    score: str | Score = option(
        "auto",
        "Input model behind the score moments: auto or gaussian.",
        must=(f"a law or one of {', '.join(SCORES)}", _is_score),
        python='"auto" takes whitened inputs for Gaussian unless their third and fourth moments say '
        "otherwise, and then chooses by ``scores.select``. Or a law or an estimated score, with "
        "``score(X, order, subspace)``.",
        names=lambda: SCORES,
    )
    start: str | Start | Sequence[str | Start] = option(
        "auto",
        f"Where the search begins: auto (a schedule), {', '.join([*REGISTRY][:-1])} or {[*REGISTRY][-1]}.",
        must=(lambda: f"one of {', '.join(_starts())}, or an object such as oh.starts.Random()", _is_start),
        python="Or one of ``oh.starts``, such as ``Random(restarts=50)``, or a list of them.",
        names=_starts,
    )
    seed: int = option(
        0,
        "Seed of every random choice: same seed, same answer.",
        must=("a whole number of at least 0", lambda value: _whole(value, 0)),
        python="With another number of threads the answer is the same to its last digits.",
        estimator="random_state",
        oracle=True,
    )
    max_seconds: float | None = option(
        None,
        "Time budget in seconds; the best answer so far is returned when it runs out.",
        must=("a positive number or None", _is_limit),
        oracle=True,
    )
    progress: bool | Progress = option(
        False,
        "Whether progress is printed to stderr.",
        must=("True, False or a function", lambda value: isinstance(value, bool) or callable(value)),
        python="A callable gets each ``TraceRecord``.",
        estimator="verbose",
        oracle=True,
        flag=False,
    )
    errors: str = option(
        "auto",
        "Standard errors: classical (equal noise everywhere), robust (sandwich), or auto: robust "
        "unless a family says what the spread of y is, and it is.",
        must=(lambda: f"one of {', '.join(_errors())}", lambda value: value in _errors()),
        names=_errors,
    )
    family: str | Family | None = option(
        None,
        "What y is, given the network's output: gaussian, poisson, bernoulli, binomial, "
        "negative_binomial, gamma, or softmax for classes.",
        python="Or one of ``oh.families``; normal noise if not given, labels if y is text.",
        names=_families,
    )
    link: str | None = option(
        None, "From the mean of y to the network's output; the family's usual one if not given."
    )
    linear: bool = option(
        False,
        "Whether a linear part of the inputs is free, in addition to the units.",
        must=_FLAG,
        python="The side of a unit such as ReLU is then a convention, relu(t) = t + relu(-t): a "
        "fixed combination of its weights is positive.",
    )
    structure: str | Structure | Sequence[str | Structure] | None = option(
        None,
        "What is known of the units: nonnegative for weights of at least zero, sparse for few inputs each, "
        "which half of the rows choose.",
        python="Or one of ``oh.structure``, or a list: zeros, a basis, a filter at many places, bounds.",
        names=lambda: tuple(STRUCTURES),
    )
    random_intercept: bool = option(
        False,
        "Whether each of the groups has an intercept of its own, drawn from a normal law whose variance is "
        "fitted by likelihood; rows in memory, one output, normal noise.",
        must=_FLAG,
        python="Standard errors by group hold whatever rows of a group share; those of "
        "``errors='classical'`` are the ones that mixed models report.",
    )

    def __post_init__(self) -> None:
        """Check every value; numbers of NumPy become Python's own."""
        import numpy as np

        from onehidden import families

        for one in fields(self):
            value = getattr(self, one.name)
            value = value.item() if isinstance(value, np.generic) else value
            object.__setattr__(self, one.name, value)
            must = one.metadata["must"]
            if must is not None and not must[1](value):
                wanted = must[0] if isinstance(must[0], str) else must[0]()
                raise ValueError(f"{one.name} must be {wanted}, got {value!r}")
        if self.family != families.Softmax.name and (self.family, self.link) != (None, None):
            # Of a softmax the number of classes comes from y.
            families.get("gaussian" if self.family is None else self.family, self.link)
        known = self.known
        if known is not None and known.units is not None:
            if self.hidden not in (None, known.units):
                raise ValueError(
                    f"the structure has {known.units} units, but hidden={self.hidden} were asked for"
                )
            object.__setattr__(self, "hidden", known.units)
        if self.activation != "auto":
            object.__setattr__(self, "bias", self.bias and not self.g.multiplicative)

    @classmethod
    def from_arguments(cls, given: Mapping[str, Any]) -> Options:
        """The options among the arguments of a call."""
        return cls(**{one.name: given[one.name] for one in fields(cls) if one.name in given})

    def arguments(self) -> dict[str, Any]:
        """The options as keywords of ``recover``."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def g(self) -> Activation:
        """The activation; the first one compared where it is to be chosen."""
        from onehidden import activations

        return activations.get(
            activations.names(compared=True)[0] if self.activation == "auto" else self.activation
        )

    @functools.cached_property
    def known(self) -> Structures | None:
        """What is known of the units."""
        from onehidden import structure

        return structure.read(self.structure)

    @property
    def start_name(self) -> str:
        """The start in words."""
        several = self.start
        if isinstance(several, str) or not isinstance(several, Sequence):
            several = [several]
        return ", ".join(one if isinstance(one, str) else one.name for one in several)

    def form(self, d: int, outputs: int | None = None) -> Parametrisation:
        """The free parameters for d coordinates; one unit where the width is to be chosen."""
        from onehidden.fit.parametrisation import Parametrisation

        return Parametrisation(
            self.g,
            d,
            self.hidden or 1,
            self.bias,
            self.intercept,
            self.linear,
            outputs=outputs,
            structure=self.known,
        )

    def to_dict(self) -> dict[str, object]:
        """The options as plain values, as the record keeps them."""
        from onehidden.families import Family

        found = {one.name: getattr(self, one.name) for one in fields(self) if one.metadata["flag"]}
        found["activation"] = "auto" if self.activation == "auto" else self.g.name
        found["score"] = self.score if isinstance(self.score, str) else type(self.score).__name__
        found["start"] = self.start_name
        found["structure"] = self.known.name if self.known else None
        if isinstance(self.family, Family):
            found["family"], found["link"] = self.family.name, self.family.link
        return found

    def checkpoint_key(self, d: int) -> dict[str, object]:
        """Options that must match to resume a checkpoint; functions are identified by their values."""
        import numpy as np

        from onehidden.run import fingerprint, stream

        at = stream(0, "points that tell laws apart").standard_normal((16, d))
        key = self.to_dict() | {"start": repr(self.start), "family": repr(self.family)}
        key["activation"] = f"{key['activation']} {fingerprint(self.g(at))}"
        if self.known is not None:
            key["structure"] = self.known.digest(d)
        if not isinstance(self.score, str):
            key["score"] = f"{key['score']} {fingerprint(np.asarray(self.score.score(at, 1), float))}"
        return key

    def check_inputs(self, d: int) -> None:
        """Refuse a given score of another number of inputs than there are columns."""
        own = d if isinstance(self.score, str) else getattr(self.score, "n_inputs", None)
        if own != d:
            raise ValueError(
                f"the score is one of {own or 'no'} inputs, but X has {d} columns: call .fit(X) of it first"
            )


def estimator_name(one: Field[Any]) -> str:
    """What the estimators call an option."""
    return one.metadata["estimator"] or one.name


def documented(function: T) -> T:
    """Write the options that a function or class takes where its docstring says ``**options``."""
    above, _, below = inspect.cleandoc(function.__doc__ or "").partition("**options : Options\n")
    options = {name: one for one in fields(Options) for name in (one.name, estimator_name(one))}
    lines = []
    for name in inspect.signature(function).parameters:
        if name in options:
            one = options[name]
            default = "optional" if one.default is None else f"default {one.default!r}"
            lines += [
                f"{name} : {str(one.type).replace(' | None', '').replace(' | ', ' or ')}, {default}",
                f"    {one.metadata['text']} {one.metadata['python']}".rstrip(),
            ]
    function.__doc__ = "\n".join([above + "\n".join(lines), *below.split("\n")[1:]])
    return function


documented(Options)

# What other libraries call arguments of ours; what an option is called elsewhere here is added.
_ELSEWHERE = {
    "n_units": "hidden", "units": "hidden", "hidden_layer_sizes": "hidden", "k": "hidden", "width": "hidden",
    "timeout": "max_seconds", "time_limit": "max_seconds", "max_time": "max_seconds", "epochs": "max_seconds",
    "max_iter": "max_seconds", "weight": "sample_weight", "weights": "sample_weight",
    "cluster": "groups", "clusters": "groups", "exposure": "offset", "fit_intercept": "intercept",
    "quiet": "progress", "data": "X", "df": "X", "frame": "X", "exog": "X", "endog": "y", "formula": "target",
    "label": "target",
}  # fmt: skip


def hinting(function: T) -> T:
    """Make a function answer an argument that it does not take with the one that is meant."""
    known = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if unknown := [name for name in kwargs if name not in known]:
            raise TypeError(_unknown(function.__qualname__.removesuffix(".__init__"), unknown[0], known))
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


def _unknown(function: str, name: str, known: Sequence[str]) -> str:
    """The sentence about an argument that there is not."""
    habits = {one.name: estimator_name(one) for one in fields(Options)}
    habits |= {theirs: ours for ours, theirs in habits.items()}
    wanted = _ELSEWHERE.get(name, name)
    same = next((other for other in (wanted, habits.get(wanted)) if other in known), None)
    takes = f"it takes {', '.join(one for one in known if one != 'self')}"
    hint = meant(name, known, takes) if same is None else f"did you mean {same!r}?"
    return f"{function}() has no argument {name!r}: {hint}"
