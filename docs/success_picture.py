"""Draws docs/success.png from the stored table: share of teachers recovered against samples per parameter."""

from pathlib import Path

import matplotlib.figure

from onehidden.report.figures import house

STORED = Path(__file__).parents[1] / "benchmarks" / "results" / "success.md"
METHODS = {"recover: exact": "-", "random starts: within 1e-6": "--", "torch: within 1e-6": ":"}


def rows() -> list[dict[str, str]]:
    """The table of the benchmark, a dictionary a row."""
    lines = [line for line in STORED.read_text().splitlines() if line.startswith("|")]
    names, *rest = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [dict(zip(names, row, strict=True)) for row in rest[1:]]


def share(text: str) -> float:
    found, runs = text.split("/")
    return int(found) / int(runs)


def main() -> None:
    stored = rows()
    widths = sorted({int(row["k"]) for row in stored})
    with house():
        figure = matplotlib.figure.Figure(figsize=(3.4 * len(widths), 3.2), layout="constrained")
        for axes, k in zip(figure.subplots(1, len(widths), squeeze=False)[0], widths, strict=True):
            for name, style in METHODS.items():
                mine = [row for row in stored if int(row["k"]) == k and row[name]]
                if mine:
                    axes.plot(
                        [float(row["n / p"]) for row in mine], [share(row[name]) for row in mine],
                        style, marker="o", markersize=3, label=name.partition(":")[0],
                    )  # fmt: skip
            axes.axvline(1.0, color="0.6", linewidth=1)
            axes.set(
                title=f"d = k = {k}", xlabel="samples per parameter", ylim=(-0.05, 1.05), xlim=(0.9, 4.1)
            )
            axes.legend()
        figure.savefig(Path(__file__).with_name("success.png"), dpi=110)


if __name__ == "__main__":
    main()
