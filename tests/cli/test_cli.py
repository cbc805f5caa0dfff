"""Commands: data to stdout, talk to stderr, exit code from the verdict, one sentence for bad input."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from helpers import command as run
from pyarrow import csv, parquet

import onehidden as oh
from onehidden.starts import REGISTRY


def fresh(*arguments, cwd=None):
    """The command in a process of its own, as a shell starts it."""
    return subprocess.run(
        [sys.executable, "-c", "from onehidden.cli import main; main()", *map(str, arguments)],
        capture_output=True, text=True, cwd=cwd, timeout=300,
    )  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table of a known network, as CSV, Parquet, npz and a folder of Parquet files."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(1)
    net = oh.OneHiddenNet(rng.standard_normal((2, 3)), [1.0, -2.0], [0.3, -0.2], 0.4)
    X = rng.standard_normal((500, 3)) + 1
    columns = pa.table({"left": X[:, 0], "right": X[:, 1], "<b>up": X[:, 2], "y": net.predict(X)})
    csv.write_csv(columns, folder / "t.csv")
    parquet.write_table(columns, folder / "t.parquet")
    (folder / "parts").mkdir()
    for i in (0, 1):
        parquet.write_table(columns.slice(250 * i, 250), folder / "parts" / f"{i}.parquet")
    np.savez(folder / "t.npz", X=X, y=net.predict(X))
    return folder, net


def test_demo_recovers_the_truth_and_writes_its_page(tmp_path):
    done = run("demo", "--json", "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["status"] == "exact"
    assert result["max_error"] < 1e-8
    page = (tmp_path / "run" / "report.html").read_text()
    for section in ("Effects of the inputs", "Parameters", "Checks"):
        assert section.lower() in page.lower()
    assert page.count("<svg") >= 3
    assert "http://" not in page.replace("http://www.w3.org", "")


@pytest.fixture(scope="module")
def run_folder(table, tmp_path_factory):
    """What recover writes of the CSV, drawn as a reader would see it; tests that change it take a copy."""
    out = tmp_path_factory.mktemp("runs") / "run"
    done = run("recover", table[0] / "t.csv", "--target", "y", "--hidden", 2, "--json", "--out", out)
    return done, out


def returns_the_units(done, out, net):
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    found = oh.load_recovery(out).network
    np.testing.assert_array_equal(found.weights, result["network"]["weights"])
    assert oh.match(found, net).max_error < 1e-8
    return result["feature_names"], (out / "report.html").read_text()


def test_recover_reads_a_table_and_draws_its_page(table, run_folder):
    names, page = returns_the_units(*run_folder, table[1])
    assert names == ["left", "right", "<b>up"]
    assert "<b>up" not in page
    assert page.count("<svg") == page.count("</svg>") >= 3


@pytest.mark.parametrize("name", ["t.parquet", "t.npz", "parts"])
def test_recover_reads_tables_and_returns_the_units(table, tmp_path, name):
    folder, net = table
    done = run("recover", folder / name, "--target", "y", "--hidden", 2, "--json", "--out", tmp_path / "run")
    names, page = returns_the_units(done, tmp_path / "run", net)
    if name != "t.npz":
        assert names == ["left", "right", "<b>up"]
        assert "<b>up" not in page


def test_run_folders_are_checked_reported_and_predicted_from(table, run_folder, tmp_path):
    folder, _ = table
    shutil.copytree(run_folder[1], tmp_path / "run")
    checked = run("check", tmp_path / "run", "--json")
    assert checked.returncode == 0
    assert json.loads(checked.stdout)["status"] == "exact"
    assert run("report", tmp_path / "run", "--out", tmp_path / "page.html").returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {"run", "page.html"}
    assert json.loads(run("report", tmp_path / "run", "--json").stdout)["status"] == "exact"
    predicted = run("predict", tmp_path / "run", folder / "t.csv", "--target", "y", "--json")
    values = np.array(json.loads(predicted.stdout)["predictions"])
    with np.load(folder / "t.npz") as truth:
        np.testing.assert_allclose(values, truth["y"], atol=1e-9)


def test_an_answer_that_is_not_certified_exits_with_one(table, tmp_path):
    folder, _ = table
    done = run("recover", folder / "t.csv", "--hidden", 1, "--start", "random", "--out", tmp_path / "run")
    assert done.returncode == 1
    assert "approximate: the data show more than the network explains" in done.stdout


def test_help_names_every_start():
    text = " ".join(run("recover", "--help").stdout.split())
    for name in ("auto", *REGISTRY):
        assert re.search(rf"\b{name}\b", text[text.index("--start") :]), name
    assert "--no-bias" in text


def test_problems_are_listed():
    done = run("problems", "--json")
    assert {p["name"] for p in json.loads(done.stdout)} == set(oh.problems.names())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("recover", "missing.csv"), "no file"),
        (("recover", "."), "Parquet"),
        (("recover", "TABLE", "--target", "z"), "target"),
        (("recover", "TABLE", "--hidden", "400"), "samples"),
        (("recover", "TABLE", "--hidden", "many"), "many"),
        (("recover", "TABLE", "--activation", "swish"), "activation"),
        (("recover", "TABLE", "--columns", "left,middle"), "middle"),
        (("recover", "JUNK"), ""),
        (("recover",), "FILE"),
        (("check", "."), "recovery.json"),
        (("report", "nowhere"), "recovery.json"),
        (("predict", "nowhere", "TABLE"), "nowhere"),
        (("reproduce", "nothing"), "nothing"),
        (("demo", "--problem", "nothing"), "nothing"),
        (("demo", "--rows", "10"), "samples"),
        (("dance",), "dance"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(table, tmp_path, arguments, message):
    folder, _ = table
    junk = tmp_path / "junk.parquet"
    junk.write_bytes(bytes(range(256)) * 4)
    named = {"TABLE": str(folder / "t.csv"), "JUNK": str(junk)}
    done = run(*(named.get(a, a) for a in arguments), cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not list(tmp_path.glob("*-run"))  # nothing half-written


def test_inputs_are_never_overwritten_and_damaged_runs_are_refused(table, run_folder, tmp_path):
    folder, _ = table
    shutil.copytree(run_folder[1], tmp_path / "run")
    before = (folder / "t.csv").read_bytes()
    for arguments in (
        ("predict", tmp_path / "run", folder / "t.csv", "--target", "y", "--out", folder / "t.csv"),
        ("score", folder / "t.parquet", "--out", folder / "t.parquet"),
    ):
        done = run(*arguments)
        assert done.returncode == 2
        assert "input itself" in done.stderr
    assert (folder / "t.csv").read_bytes() == before
    record = json.loads((tmp_path / "run" / "recovery.json").read_text())
    before_digests = {"format_version": 2}
    for damage in (
        {"message": "all is well"},
        *({**before_digests, **one} for one in ({"checks": []}, {"status": "great"}, {"network": None})),
    ):
        (tmp_path / "run" / "recovery.json").write_text(json.dumps({**record, **damage}))
        done = run("check", tmp_path / "run")
        assert done.returncode == 2, damage
        assert "Traceback" not in done.stderr


def test_a_process_of_its_own_ends_with_the_sentence_and_the_code(tmp_path):
    done = fresh("recover", "missing.csv", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("onehidden: no file at missing.csv")
    assert len(done.stderr.splitlines()) == 1


def test_a_closed_stdout_is_no_failure():
    command = f"{sys.executable} -c 'from onehidden.cli import main; main()' problems --json | head -c 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert done.stderr == ""
    closed = command.replace("problems --json | head -c 1", "--help >&-")
    done = subprocess.run(["bash", "-c", closed], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_a_folder_is_streamed_and_its_steps_are_kept(table, tmp_path):
    folder, net = table
    rows = tmp_path / "rows"
    rows.mkdir()
    (rows / "0.parquet").write_bytes((folder / "t.parquet").read_bytes())
    done = run("recover", rows, "--hidden", 2, "--checkpoint", "kept", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    weights = json.loads(done.stdout)["network"]["weights"]
    assert oh.match(oh.OneHiddenNet(weights, [1.0, 1.0]), net).max_error < 1e-8
    assert (tmp_path / "kept" / "checkpoint.json").exists()
