"""Models in their usual forms become boxes; an endpoint that fails half-way gets no query twice."""

import http.client
import json
import os
import signal
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import teacher, worst_error

import onehidden as oh
from onehidden.cli import cli
from onehidden.oracle.adapters import Endpoint, from_onnx, from_sklearn, from_torch

NET = teacher("relu", 5, 3, rows="gaussian", output="uneven", bias=0.3, intercept=0.3)


class Server:
    """A real one on this machine, which remembers every row and may stop answering."""

    def __init__(self):
        self.rows, self.left, self.posts, self.hear = [], float("inf"), 0, lambda posts: None
        self.reply = lambda y: json.dumps({"outputs": y}).encode()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                X = np.array(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["inputs"])
                if outer.left <= 0:
                    self.send_error(500)
                    return
                outer.left -= 1
                outer.posts += 1
                outer.hear(outer.posts)
                outer.rows += [row.tobytes() for row in X]
                y = np.maximum(X @ NET.weights.T + NET.bias, 0) @ NET.output + NET.intercept
                body = outer.reply(y.tolist())
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def server():
    one = Server()
    yield one
    one.http.shutdown()
    one.http.server_close()


def test_an_endpoint_killed_half_way_is_not_asked_anything_twice(server, tmp_path):
    whole = oh.recover_oracle(Endpoint(server.url), 5)
    assert whole.status == "exact"
    assert worst_error(whole.network, NET) < 1e-12
    server.rows.clear()
    server.left = 14
    with pytest.raises(ValueError, match="did not answer"):
        oh.recover_oracle(Endpoint(server.url, tmp_path / "answers", retries=0), 5)
    first = len(server.rows)
    assert first > 300
    server.left = float("inf")
    again = Endpoint(server.url, tmp_path / "answers")
    r = oh.recover_oracle(again, 5)
    assert r.network == whole.network
    assert again.asked == len(server.rows) - first > 0
    assert len(set(server.rows)) == len(server.rows)


def test_a_failing_endpoint_is_tried_again_at_its_own_pace(server, monkeypatch):
    waits = []
    monkeypatch.setattr("onehidden.oracle.adapters.time.sleep", waits.append)
    server.left = 0
    box = Endpoint(server.url, retries=3, rate=2.0)
    with pytest.raises(ConnectionError, match="did not answer"):
        box(np.zeros((2, 5)))
    assert [w for w in waits if w in (0.5, 1.0, 2.0)] == [0.5, 1.0, 2.0]
    assert any(0 < w <= 0.5 and w not in (0.5,) for w in waits)  # two requests a second
    with pytest.raises(ValueError, match="http"):
        Endpoint("ftp://nowhere")
    wrong: list[dict[str, Any]] = [{"rate": 0}, {"rate": -1.0}, {"batch": 0}, {"retries": -1}, {"timeout": 0}]
    for bad in wrong:
        with pytest.raises(ValueError, match=next(iter(bad))):
            Endpoint(server.url, **bad)


@pytest.mark.parametrize(
    "reply",
    [
        lambda y: json.dumps({"answers": y}).encode(),
        lambda y: json.dumps({"outputs": y[:-1]}).encode(),
        lambda y: json.dumps({"outputs": ["a"] * len(y)}).encode(),
        lambda y: json.dumps({"outputs": [[v, v] for v in y]}).encode(),
        lambda y: json.dumps("busy").encode(),
        lambda y: b"<html>",
    ],
)
def test_a_reply_of_another_form_is_a_failure_and_no_answer(server, reply):
    box, good = Endpoint(server.url, retries=0), server.reply

    def turned_bad(posts):
        server.reply = good if posts < 5 else reply

    server.hear = turned_bad
    with pytest.raises(ValueError, match="ConnectionError"):
        oh.recover_oracle(box, 5)
    assert server.posts == 5  # not asked again row by row, as rows outside are


def test_a_reply_cut_short_is_asked_for_again(server, monkeypatch):
    monkeypatch.setattr("onehidden.oracle.adapters.time.sleep", lambda seconds: None)
    read, cut = http.client.HTTPResponse.read, [True]

    def once_cut(self, *args):
        if cut and cut.pop():
            raise http.client.IncompleteRead(b"{")
        return read(self, *args)

    monkeypatch.setattr(http.client.HTTPResponse, "read", once_cut)
    X = np.ones((2, 5))
    assert np.allclose(Endpoint(server.url)(X)[:, 0], NET.predict(X), rtol=0, atol=1e-12)
    assert server.posts == 2


def test_a_book_belongs_to_one_endpoint(server, tmp_path):
    path, X = tmp_path / "answers", np.arange(20.0).reshape(4, 5)
    told = Endpoint(server.url, path)(X)
    with pytest.raises(ValueError, match="holds the answers of"):
        Endpoint(server.url + "other", path)
    again = Endpoint(server.url, path)
    assert np.array_equal(again(np.vstack([X, X])), np.vstack([told, told]))
    assert again.asked == 0
    assert Endpoint(server.url)(np.vstack([X, X])).shape == (8, 1)
    (tmp_path / "other").write_bytes(b"onehidden answers 2\n{}\n" * 100)
    with pytest.raises(ValueError, match="name another one"):
        Endpoint(server.url, tmp_path / "other")


def test_the_command_keeps_a_run_that_is_there_and_what_ctrl_c_interrupts(server, tmp_path):
    out = tmp_path / "run"
    line = ["oracle", "--url", server.url, "--inputs", "5", "--out", str(out), "--batch", "512"]
    server.hear = lambda posts: os.kill(os.getpid(), signal.SIGINT) if posts == 25 else None
    stopped = CliRunner().invoke(cli, line, standalone_mode=False)
    assert stopped.return_value == 130, stopped.output
    assert "stopped by hand" in oh.load_recovery(out).message
    before, asked = (out / "recovery.json").read_bytes(), server.posts
    refused = CliRunner().invoke(cli, line)
    assert refused.exit_code != 0
    assert "--force" in str(refused.exception) + refused.output
    assert (server.posts, (out / "recovery.json").read_bytes()) == (asked, before)
    done = CliRunner().invoke(cli, [*line, "--force"], standalone_mode=False)
    assert done.return_value == 0, done.output
    assert worst_error(oh.load_recovery(out).network, NET) < 1e-12


def test_an_onnx_file_is_read_by_the_command(tmp_path):
    pytest.importorskip("onnxruntime")
    path = tmp_path / "model.onnx"
    NET.to_onnx(path)
    box, d = from_onnx(path)
    assert d == 5
    X = np.random.default_rng(0).standard_normal((7, 5))
    assert np.allclose(np.ravel(box(X)), NET.predict(X), rtol=0, atol=1e-12)
    done = CliRunner().invoke(
        cli, ["oracle", str(path), "--out", str(tmp_path / "run")], standalone_mode=False
    )
    assert done.return_value == 0, done.output
    for words in ("The network gives the answers", "may be interpreted", "checks passed"):
        assert words in " ".join(done.output.split())
    assert worst_error(oh.load_recovery(tmp_path / "run").network, NET) < 1e-12
    estimate = CliRunner().invoke(cli, ["oracle", "--inputs", "784", "--hidden", "32", "--dry-run"])
    assert 25_000 < int(estimate.output.split()[0]) < 400_000
    with pytest.raises(ValueError, match="no ONNX file"):
        from_onnx(tmp_path / "nothing.onnx")


def test_an_estimator_is_asked_for_what_it_has():
    from sklearn.neural_network import MLPRegressor

    with pytest.raises(ValueError, match="not fitted"):
        from_sklearn(MLPRegressor())
    box, d = from_sklearn(NET.to_sklearn())
    assert d == 5
    X = np.random.default_rng(0).standard_normal((7, 5))
    assert np.allclose(box(X), NET.predict(X), rtol=0, atol=1e-12)


def test_a_torch_module_is_asked_in_its_own_precision():
    torch = pytest.importorskip("torch")
    X = np.random.default_rng(0).standard_normal((7, 5))
    assert np.allclose(np.ravel(from_torch(NET.to_torch(), "float64")(X)), NET.predict(X), rtol=0, atol=1e-12)
    still = torch.nn.Dropout(0.5).eval()
    module = torch.nn.Sequential(NET.to_torch(), torch.nn.Dropout(0.5), still).train()
    still.eval()
    box = from_torch(module, "float64")
    assert np.allclose(np.ravel(box(X)), NET.predict(X), rtol=0, atol=1e-12)  # nothing is dropped
    assert [module.training, module[1].training, still.training] == [True, True, False]
    if torch.cuda.is_available():
        assert np.allclose(
            np.ravel(from_torch(module.cuda(), "float64")(X)), NET.predict(X), rtol=0, atol=1e-12
        )
