"""A smoke test of an installed package, with nothing but what it installs: python tests/smoke.py."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import onehidden as oh


def main() -> None:
    """Recover, ask a black box, predict, save, show; then the same from the command line."""
    rng = np.random.default_rng(0)
    truth = oh.OneHiddenNet([[0.6, 0.8], [1.0, 0.0]], [1.0, -2.0], [0.3, 0.0])
    X = rng.standard_normal((400, 2))
    y = truth.predict(X)
    r = oh.recover(X, y, hidden=2)
    assert r.status == "exact", r
    assert oh.match(r.network, truth).max_error < 1e-8
    asked = oh.recover_oracle(truth.predict, n_inputs=2)
    assert oh.match(asked.network, truth).max_error < 1e-8
    model = oh.OneHiddenRegressor(n_hidden=2).fit(X, y)
    assert np.allclose(model.predict(X), y)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        r.save(folder / "saved")
        assert oh.load_recovery(folder / "saved").network == r.network
        r.report(folder / "page.html", X=X, y=y)
        assert "<svg" in (folder / "page.html").read_text(encoding="utf-8")
        np.savetxt(
            folder / "data.csv", np.column_stack([X, y]), delimiter=",", header="left,right,y", comments=""
        )
        for words in (
            ("recover", "data.csv", "--target", "y", "--hidden", "2"),
            ("check", "data-run"),
            ("predict", "data-run", "data.csv", "--target", "y", "--out", "out.csv"),
            ("report", "data-run", "--data", "data.csv", "--out", "page.html"),
        ):
            command = [str(Path(sys.executable).with_name("onehidden")), *words]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{words}: {done.stderr}"
        assert (folder / "data-run" / "units.csv").is_file()
    print(f"onehidden {oh.__version__} on Python {sys.version.split()[0]}: recovers, predicts, saves, shows")


if __name__ == "__main__":
    main()
