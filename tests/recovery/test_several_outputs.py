"""A record of several outputs: saved, read back, shown and drawn."""

from __future__ import annotations

import json

import numpy as np

import onehidden as oh


def test_a_record_of_several_outputs_survives_saving_and_is_shown(tmp_path):
    truth = oh.OneHiddenNet(
        [[0.6, 0.8, 0.0], [1.0, 0.0, -0.5]], [[1.0, -2.0], [0.5, 3.0]], [0.3, -0.2], [0.1, -0.7]
    )
    r = oh.recover_oracle(truth.predict, n_inputs=3)
    assert oh.match(r.network, truth).max_error < 1e-8
    r.save(tmp_path / "run")
    again = oh.load_recovery(tmp_path / "run")
    assert again.network == r.network
    np.testing.assert_array_equal(again.standard_errors.intercept, r.standard_errors.intercept)
    np.testing.assert_array_equal(again.units[1].output, r.units[1].output)
    X = np.random.default_rng(0).standard_normal((200, 3))
    np.testing.assert_array_equal(again.predict(X), r.predict(X))
    assert again.predict(X).shape == (200, 2)
    assert str(again).startswith("2 relu units of 2 outputs")
    assert len(again.to_frame()) > 6
    again.report(tmp_path / "page.html", X=X, y=truth.predict(X))
    assert "2 relu units of 2 outputs" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "run" / "recovery.json").read_text())["network"]["intercept"] != 0.0
