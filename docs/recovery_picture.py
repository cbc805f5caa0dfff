"""Draws docs/recovery.png: 50 recovered units against the true ones, and the loss on the way."""

from pathlib import Path

import matplotlib.figure
import numpy as np

import onehidden as oh
from onehidden.report.figures import house


def main() -> None:
    X, y, truth = oh.problems.get("relu-rotation-50").sample(None, 0)
    r = oh.recover(X, y, 50, bias=False)
    paired = r.network.weights[oh.match(r.network, truth).permutation]
    with house(either=True):
        figure = matplotlib.figure.Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subfigures(1, 2, width_ratios=(1, 1.2))
        axes = left.add_subplot(xlabel="true unit", ylabel="found unit")
        image = axes.imshow(np.abs(paired @ truth.weights.T), aspect="auto", cmap="Blues", vmin=0, vmax=1)
        left.colorbar(image, label="|cos|")
        axes = right.add_subplot(yscale="log", xlabel="seconds", ylabel="loss")
        for stage in dict.fromkeys(record.stage for record in r.trace):
            mine = [record for record in r.trace if record.stage == stage]
            loss = np.maximum([record.loss for record in mine], 1e-34)
            axes.plot([record.seconds for record in mine], loss, marker="o", markersize=2.2, label=stage)
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), borderaxespad=0)
        figure.savefig(Path(__file__).with_name("recovery.png"), dpi=110)


if __name__ == "__main__":
    main()
