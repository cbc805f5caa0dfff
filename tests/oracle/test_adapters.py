"""Models as people have them are asked; an endpoint that dies half-way is not asked twice."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

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
        self.rows, self.left = [], float("inf")
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                X = np.array(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["inputs"])
                if outer.left <= 0:
                    self.send_error(500)
                    return
                outer.left -= 1
                outer.rows += [row.tobytes() for row in X]
                y = np.maximum(X @ NET.weights.T + NET.bias, 0) @ NET.output + NET.intercept
                body = json.dumps({"outputs": y.tolist()}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()


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
    with (tmp_path / "answers").open("ab") as file:
        file.write(b"\x28\x00\x00")  # a record cut short
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
    pytest.importorskip("torch")
    X = np.random.default_rng(0).standard_normal((7, 5))
    assert np.allclose(np.ravel(from_torch(NET.to_torch(), "float64")(X)), NET.predict(X), rtol=0, atol=1e-12)
