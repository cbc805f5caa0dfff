"""Draws docs/recovery.png: 50 recovered units against the true ones, and the loss on the way."""

from pathlib import Path

import matplotlib.figure
import numpy as np

import onehidden as oh
from onehidden.report import figures
from onehidden.report.figures import house


def main() -> None:
    X, y, truth = oh.problems.get("relu-rotation-50").sample(None, 0)
    r = oh.recover(X, y, 50, bias=False)
    paired = r.network.weights[oh.match(r.network, truth).permutation]
    with house(either=True):
        figure = matplotlib.figure.Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subfigures(1, 2, width_ratios=(1, 1.2))
        names = [str(i + 1) for i in range(50)]
        figures.cosines(left, np.abs(paired @ truth.weights.T), names, names)
        loss, clock, steps = (
            np.array([getattr(t, one) for t in r.trace]) for one in ("loss", "seconds", "step")
        )
        figures.trace(right, [t.stage for t in r.trace], np.maximum(loss, 1e-34), clock, steps)
        figure.savefig(Path(__file__).with_name("recovery.png"), dpi=110)


if __name__ == "__main__":
    main()
