"""Draws docs/growth.png from the stored table: seconds and memory against rows, inputs and units."""

from pathlib import Path

import matplotlib.figure

from onehidden.report.figures import house

STORED = Path(__file__).parents[1] / "benchmarks" / "results" / "growth.md"
WORDS = {"n": "rows n", "d": "inputs d", "k": "units k"}


def rows() -> list[dict[str, str]]:
    """The measured lines of the benchmark's table, a dictionary each; those of exponents are left out."""
    lines = [line for line in STORED.read_text().splitlines() if line.startswith("|")]
    names, *rest = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [dict(zip(names, row, strict=True)) for row in rest[1:] if row[1] in WORDS]


def main() -> None:
    stored = rows()
    with house():
        figure = matplotlib.figure.Figure(figsize=(8.4, 4.6), layout="constrained")
        for line, (column, label) in enumerate((("processor s", "processor seconds"), ("MiB", "MiB"))):
            for place, letter in enumerate(WORDS):
                axes = figure.add_subplot(2, 3, 3 * line + place + 1)
                for what in ("recovery", "J'J"):
                    mine = [row for row in stored if row["what"] == what and row["grows"] == letter]
                    values = [float(row[letter]) for row in mine], [float(row[column]) for row in mine]
                    axes.loglog(*values, marker="o", markersize=3, label=what)
                axes.set(xlabel=WORDS[letter], ylabel=label if place == 0 else "")
                axes.legend()
        figure.savefig(Path(__file__).with_name("growth.png"), dpi=90)


if __name__ == "__main__":
    main()
