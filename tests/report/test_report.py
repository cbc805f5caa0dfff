"""Reports: every section in its place, names as text, nothing fetched, drawn the same every time."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from fake_recovery import HOSTILE, bare, fake, problem
from helpers import sketched

from onehidden import report
from onehidden.report import wording
from onehidden.report.figures import plain

NAMES = (
    HOSTILE,
    "age",
    '"><img src=x onerror=alert(2)>',
    "**bmi** | `x` [a](b)",
    "$\\frac{1}{0}$",
    "\u65e5\u672c\u8a9e {{ 7*7 }}",
)
FIRST = ["summary", "effects", "observed"]
DETAILS = ["checks", "parameters", "reproduce"]
SECTIONS = FIRST + DETAILS
FIGURES = {"observed-1", "input-1"}
N_FIGURES = 1 + 6  # the fit, inputs


class _Page(HTMLParser):
    """What a browser would see: tags, ids, addresses, text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href", "srcset", "action"):
                self.addresses.append(value)
            assert not name.startswith("on"), (tag, name)

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    X, y, _truth, found = problem(2, n=300)
    report.render_html(fake(found, NAMES), folder / "r.html", X, y)
    return folder


@pytest.fixture
def sketches():
    """For tests that read the words of a page and not its pictures."""
    with sketched():
        yield


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """The page of a large network that is not certified."""
    X, y, _truth, found = problem(50, 50, 1500)
    folder = tmp_path_factory.mktemp("big")
    return report.render_html(fake(found, good=False), folder / "big.html", X, y)


def test_html_has_every_section_and_figure_in_order(pages):
    page = _Page((pages / "r.html").read_text())
    assert [name for name in page.ids if name in SECTIONS] == SECTIONS
    assert {f"figure-{name}" for name in FIGURES} <= set(page.ids)
    assert page.tags.count("svg") == N_FIGURES
    assert len(page.ids) == len(set(page.ids))


def test_html_verdict_comes_first(pages):
    text = (pages / "r.html").read_text()
    places = [
        text.index(one)
        for one in ('class="verdict good"', 'class="formula"', 'class="facts"', 'id="effects"')
    ]
    assert places == sorted(places)
    assert text.index('id="observed"') < text.index("<details>") < text.index('id="checks"')
    assert text.count("<details>") == len(DETAILS)


def test_html_shows_hostile_names_as_text(pages):
    raw = (pages / "r.html").read_text()
    page = _Page(raw)
    assert "script" not in page.tags
    assert "img" not in page.tags
    for name in NAMES:
        assert name in page.text
    assert "<script>alert(1)" not in raw
    assert "49" not in re.findall(r"\u65e5\u672c\u8a9e ([^<]*)", page.text)


def test_html_fetches_nothing(pages):
    raw = (pages / "r.html").read_text()
    page = _Page(raw)
    assert all(address.startswith(("#", "data:")) for address in page.addresses)
    assert not re.search(r"url\((?!#)", raw)
    assert "@import" not in raw
    assert "link" not in page.tags or page.addresses.count("data:,") == 1


def test_html_of_a_large_network_stays_small(big):
    assert 100_000 < big.stat().st_size < 1_000_000
    assert 'class="verdict doubt"' in big.read_text()


def test_a_network_of_several_outputs_shows_them_all(tmp_path, sketches):
    X, y, _, found = problem()
    outputs = np.column_stack([found.output, -2 * found.output])
    several = type(found)(found.weights, outputs, found.bias, [0.3, 0.1])
    made = fake(found, NAMES)
    own = made.standard_errors
    wide = replace(own, output=np.column_stack([own.output] * 2), intercept=np.array([0.1, 0.2]))
    made = replace(made, network=several, standard_errors=wide)
    page = _Page(report.render_html(made, tmp_path / "two.html", X, np.column_stack([y, y])).read_text())
    assert "4 relu units of 2 outputs" in page.text
    assert {"figure-observed-1", "figure-observed-2"} <= set(page.ids)
    assert f"y1 ≈ {wording.short(-2 * found.output[0], 3)} h1" in page.text
    assert wording.short(-2 * found.output[1]) in page.text


def test_numbers_beyond_a_page_are_counted(tmp_path, sketches):
    *_, found = problem(10, 200, 2500)
    text = report.render_html(fake(found), tmp_path / "a.html").read_text()
    total = found.weights.size + 2 * found.n_hidden + 1
    shown = text[text.index('id="parameters"') :].count('<th scope="row">')
    assert 100 < shown < total
    assert f"{total - shown} more numbers in units.csv" in text


def test_report_of_a_bare_recovery_leaves_sections_out(tmp_path, sketches):
    *_, found = problem()
    page = _Page(report.render_html(bare(found), tmp_path / "bare.html").read_text())
    assert [name for name in page.ids if name in SECTIONS] == ["summary", "parameters", "reproduce"]


def test_same_recovery_gives_the_same_bytes(pages, tmp_path):
    X, y, _truth, found = problem(2, n=300)
    again = report.render_html(fake(found, NAMES), tmp_path / "again.html", X, y)
    assert again.read_bytes() == (pages / "r.html").read_bytes()


def test_rendering_leaves_the_callers_matplotlib_settings_alone(tmp_path):
    import matplotlib

    *_, found = problem()
    before = dict(matplotlib.rcParams)
    report.render_html(bare(found), tmp_path / "a.html")
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"X": np.ones((5, 2)) * np.arange(5)[:, None]}, r"X must be \(n, 6\)"),
        ({"y": np.ones(5)}, "without X"),
        ({"X": np.full((5, 6), np.nan)}, "finite"),
    ],
)
def test_wrong_samples_get_one_sentence(arguments, words, tmp_path):
    *_, found = problem()
    with pytest.raises(ValueError, match=words):
        report.render_html(bare(found), tmp_path / "a.html", **arguments)
    with pytest.raises(ValueError, match="is a folder"):
        report.render_html(bare(found), tmp_path)


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (1.23456, 0.0123, "1.235 ± 0.012"),
        (-1.5, 0.2, "−1.50 ± 0.20"),
        (1234.5, 67.0, "1234 ± 67"),
        (0.5, 1e-12, "0.5 ± 1e-12"),
        (-3e-8, None, "−3e-08"),
        (2.0, 0.0, "2"),
        (5e6, 1e4, "5000000 ± 1e+04"),
        (float("inf"), None, "∞"),
    ],
)
def test_values_carry_the_digits_their_error_supports(value, error, text):
    assert wording.with_error(value, error) == text


def test_axis_names_are_never_mathematics():
    assert plain("$\\frac{1}{0}$") == r"\$\frac{1}{0}\$"
    assert plain("a\nb") == "a b"
    assert len(plain("x" * 100)) == 30


CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None
)


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium or chrome on this machine's PATH")
@pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="needs pip install playwright")
def test_browser_opens_the_page_quietly(pages, big, tmp_path):
    # In a process of its own: playwright's loop does not mix with other plugins of the test run.
    script = tmp_path / "browse.py"
    script.write_text(_BROWSE)
    done = subprocess.run(
        [sys.executable, str(script), str(CHROMIUM), str(pages / "r.html"), str(big)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for seen in json.loads(done.stdout):
        assert seen["troubles"] == []
        assert seen["requests"] == []
        assert seen["hidden_figures"] == 0
        assert seen["figures"] >= 7  # six effects and the fit
        assert seen["before_details"] < 3 * 900 or seen["view_width"] < 1000
        assert seen["dark_ground"] != seen["light_ground"]
        assert seen["page_width"] <= seen["view_width"]
        assert seen["dialogs"] == 0
        assert seen["printed_navigation"] == "none"
        assert seen["cut_when_printed"] == 0
        assert "<script>alert(1)" in seen["text"] or "x0" in seen["text"]  # a hostile name, seen as text
    assert min(seen["ready_ms"] for seen in json.loads(done.stdout)[2:]) < 2000  # a 50-unit network


_BROWSE = """
import json, pathlib, sys
from playwright.sync_api import sync_playwright

out = []
with sync_playwright() as play:
    flags = ["--no-sandbox", "--disable-background-networking", "--disable-dev-shm-usage"]
    browser = play.chromium.launch(executable_path=sys.argv[1], headless=True, args=flags)
    for file in sys.argv[2:]:
        for width in (1200, 390):
            page = browser.new_page(viewport={"width": width, "height": 900})
            troubles, requests, dialogs = [], [], []
            page.on("console", lambda m: troubles.append(m.text))
            page.on("pageerror", lambda e: troubles.append(str(e)))
            page.on("dialog", lambda d: (dialogs.append(d.message), d.dismiss()))
            page.on("request", lambda r: requests.append(r.url))
            before = "document.querySelector('nav').getBoundingClientRect().top"
            ground = "getComputedStyle(document.body).backgroundColor"
            address = pathlib.Path(file).resolve().as_uri()
            page.goto(address)
            above, light = page.evaluate(before), page.evaluate(ground)
            page.emulate_media(color_scheme="dark")
            dark = page.evaluate(ground)
            page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
            sizes = page.evaluate(
                "[...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect())"
                ".map(r => [r.width, r.height])"
            )
            ready = "performance.getEntriesByType('navigation')[0].duration"
            taken = page.evaluate(ready)
            for _ in range(6):  # a busy machine is not a slow page
                if taken < 2000:
                    break
                page.reload()
                taken = min(taken, page.evaluate(ready))
            text = page.evaluate("document.body.innerText")
            page_width = page.evaluate("document.documentElement.scrollWidth")
            page.emulate_media(media="print")
            cut = page.evaluate(
                "[...document.querySelectorAll('.scroll')].filter("
                "s => getComputedStyle(s).overflowY != 'visible').length"
            )
            navigation = page.evaluate("getComputedStyle(document.querySelector('nav')).display")
            out.append({
                "text": text,
                "before_details": above,
                "light_ground": light,
                "dark_ground": dark,
                "printed_navigation": navigation,
                "cut_when_printed": cut,
                "troubles": troubles,
                "dialogs": len(dialogs),
                "requests": [r for r in requests if r != address and not r.startswith("data:")],
                "figures": len(sizes),
                "hidden_figures": sum(w < 100 or h < 60 for w, h in sizes),
                "page_width": page_width,
                "view_width": width,
                "ready_ms": taken,
            })
            page.close()
    browser.close()
print(json.dumps(out))
"""
