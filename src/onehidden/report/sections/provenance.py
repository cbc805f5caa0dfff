"""How to repeat the recovery, and whom to cite."""

from __future__ import annotations

import shlex
from typing import Any

from onehidden.report.blocks import Block, Code, Grid, Paragraph, Section
from onehidden.report.subject import Subject

_READING = (
    "columns", "weight", "offset", "trials", "nulls", "drop", "one_hot", "constant", "encoding", "decimal",
    "na",
)  # fmt: skip
_FLAGS = (
    "hidden", "activation", "family", "link", "linear", "bias", "intercept", "score", "start", "errors",
    "seed", "max_seconds",
)  # fmt: skip
_NEEDLESS = {"family": None, "link": None, "linear": False}  # not worth a word where they are so


def reproduce(subject: Subject) -> Section:
    options = dict(subject.get("options", {}))
    blocks: list[Block] = []
    command = _command(options)
    if command:
        blocks += [Paragraph("On the command line:"), Code(command, "sh")]
    asked = int(subject.get("queries", 0))
    call = _call(options) if not asked else _question(options, subject.net.n_inputs)
    blocks += [Paragraph("In Python:"), Code(call, "python")]
    if asked:
        blocks.append(Paragraph(f"The black box was asked {asked} rows."))
    seed = options.get("seed")
    if seed is not None:
        blocks.append(Paragraph(f"Seed {seed}: the same seed, data and versions give the same answer."))
    versions = dict(subject.get("versions", {}))
    if versions:
        rows = tuple((str(name), str(version)) for name, version in versions.items())
        blocks.append(Grid(("package", "version"), rows, wordy=frozenset({1})))
    return Section("reproduce", "How to reproduce", tuple(blocks), detail=True)


def _question(options: dict[str, Any], d: int) -> str:
    given = "".join(f", {name}={options[name]!r}" for name in (*_FLAGS, "reach") if name in options)
    return f"import onehidden as oh\n\nr = oh.recover_oracle(fn, {d}{given})"


def _call(options: dict[str, Any]) -> str:
    asked = [name for name in _FLAGS if name in options]
    arguments = [f"{n}={options[n]!r}" for n in asked if n not in _NEEDLESS or options[n] != _NEEDLESS[n]]
    given = ", ".join(arguments)
    source = options.get("source")
    if source is None:
        return f"import onehidden as oh\n\nr = oh.recover(X, y{', ' + given if given else ''})"
    chosen = "".join(f", {name}={options[name]!r}" for name in _READING if name in options)
    opened = f"oh.data.open({str(source)!r}, target={options.get('target')!r}{chosen})"
    beside = [f"{name}=table.{name}" for name in ("offset", "trials") if options.get(name)]
    given = ", ".join([*arguments, *beside])
    return f"import onehidden as oh\n\ntable = {opened}\nr = oh.recover(table{', ' + given if given else ''})"


def _command(options: dict[str, Any]) -> str | None:
    """The command line that was typed, or one that does the same from a file."""
    if "command" in options:
        return str(options["command"])
    source, target = options.get("source"), options.get("target")
    if source is None or target is None:
        return None
    words = ["onehidden", "recover", str(source), *_typed("target", target)]
    for name in _READING:
        words += _typed(name, options[name]) if name in options else []
    for name in _FLAGS:
        value, flag = options.get(name), name.replace("_", "-")
        if name in _NEEDLESS and value == _NEEDLESS[name]:
            continue
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif value is not None:
            words += [f"--{flag}", str(value)]
    return shlex.join(words)


def _typed(name: str, value: Any) -> list[str]:
    """How an option of reading is typed; the command leaves constant columns out by itself."""
    flag = f"--{name.replace('_', '-')}"
    if name == "constant":
        return []
    if name == "columns" or (name == "target" and isinstance(value, list)):
        quoted = ('"' + n.replace('"', '""') + '"' if "," in n or '"' in n else n for n in map(str, value))
        return [flag, ",".join(quoted)]
    if isinstance(value, (dict, bool)):
        return [flag]
    return [word for one in (value if isinstance(value, list) else [value]) for word in (flag, str(one))]


_PAPERS = """\
W. Gao, A. V. Makkuva, S. Oh, P. Viswanath. Learning One-hidden-layer Neural Networks under General Input \
Distributions. AISTATS 2019.
R. Ge, J. D. Lee, T. Ma. Learning One-hidden-layer Neural Networks with Landscape Design. ICLR 2018.
K. Zhong, Z. Song, P. Jain, P. L. Bartlett, I. S. Dhillon. Recovery Guarantees for One-hidden-layer Neural \
Networks. ICML 2017."""


def cite(subject: Subject) -> Section:
    from onehidden import __version__

    version = dict(subject.get("versions", {})).get("onehidden", __version__)
    entry = f"onehidden, version {version}: recovery of the hidden layer behind data. Software.\n"
    lead = Paragraph("Name the software with its version, and the papers that its methods come from.")
    return Section("cite", "How to cite", (lead, Code(entry + _PAPERS, "text")), detail=True)
