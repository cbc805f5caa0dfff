"""A recovery as a page for people: one document tree, rendered to HTML, Markdown and JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from onehidden.atomic import write_atomically
from onehidden.network import OneHiddenNet

if TYPE_CHECKING:
    from onehidden.report.blocks import Report
    from onehidden.report.subject import Recovered

__all__ = ["as_json_text", "drawn_with_samples", "render_html", "render_json", "render_markdown"]

Truth = OneHiddenNet | None


def render_html(
    recovery: Recovered, path: str | Path, X: object = None, y: object = None, truth: Truth = None
) -> Path:
    """Write one self-contained page, with its figures inside.

    Parameters
    ----------
    recovery : Recovery
        The result of ``recover``.
    path : str or Path
        The file to write; a missing folder is made.
    X : array_like of shape (n, d) or data.Table, optional
        Samples for the response curves and for observed against predicted values, of which a subsample is
        drawn. A table may hold the target with its offset and trials.
    y : array_like of shape (n,) or (n, q), optional
        The target at these samples.
    truth : OneHiddenNet, optional
        The network that made the data: adds the matched units and their errors.

    Returns
    -------
    Path
        The path written.
    """
    from onehidden.report import blocks

    return _write(path, blocks.to_html(_build(recovery, X, y, truth)))


def render_markdown(
    recovery: Recovered, path: str | Path, X: object = None, y: object = None, truth: Truth = None
) -> Path:
    """Write the report as Markdown, and its figures as SVG files in the folder NAME-figures next to it.

    The parameters are those of ``render_html``.
    """
    from onehidden.report import blocks

    text, figures = blocks.to_markdown(_build(recovery, X, y, truth), f"{Path(path).stem}-figures")
    for name, svg in figures.items():
        _write(Path(path).parent / name, svg)
    return _write(path, text)


def render_json(
    recovery: Recovered, path: str | Path, X: object = None, y: object = None, truth: Truth = None
) -> Path:
    """Write the report as JSON: the same sections, with the numbers behind every figure.

    The parameters are those of ``render_html``.
    """
    return _write(path, as_json_text(recovery, X, y, truth))


def as_json_text(recovery: Recovered, X: object = None, y: object = None, truth: Truth = None) -> str:
    """The JSON that ``render_json`` writes."""
    from onehidden.report import blocks

    return blocks.to_json(_build(recovery, X, y, truth))


def drawn_with_samples(path: str | Path) -> bool:
    """Whether a report on disk is an HTML page with figures of the fit."""
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm") or not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        return '<meta name="onehidden-samples" content="yes">' in file.read(4000)


def _build(recovery: Recovered, X: object, y: object, truth: Truth) -> Report:
    """The chapters in reading order, details last; chapters without data leave themselves out."""
    from onehidden.report import answer, response
    from onehidden.report.blocks import Report
    from onehidden.report.screen import title
    from onehidden.report.subject import gather

    subject = gather(recovery, X, y, truth)
    chapters = (
        answer.summary, response.of_curve, response.of_units, response.at_a_glance, response.matched,
        answer.checks, response.outputs, answer.alternatives, response.of_inputs, response.residuals_by_unit,
        response.effects_map, response.intervals, answer.loss_trace, answer.curvature,
        answer.moment_signal, answer.score_validity, answer.reproduce, answer.cite,
    )  # fmt: skip
    net, errors = recovery.network, subject.errors
    named = ("weights", "bias", "output", "intercept")
    network = {
        "activation": net.activation.name,
        "feature_names": list(subject.names),
        **{name: getattr(net, name) for name in named},
        "standard_errors": None if errors is None else {name: getattr(errors, name) for name in named},
    }
    sections = tuple(section for chapter in chapters if (section := chapter(subject)) is not None)
    return Report(title(subject), sections, network, samples=subject.X is not None)


def _write(path: str | Path, text: str) -> Path:
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the name of the file to write")
    write_atomically(path, text.encode())
    return path
