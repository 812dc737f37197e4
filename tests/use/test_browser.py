"""The pages in a real browser: no error in the console, no request to anywhere, the player obeys.

Needs playwright and a Chromium: set EXACTSEL_CHROMIUM to its path, or ``playwright install chromium``. With
EXACTSEL_AXE naming axe-core's ``axe.min.js``, accessibility is checked as well.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from clocks import HANG

from exactsel import best_model, load, solve, solve_path, write_report
from exactsel.report.comparison_page import comparison_page
from exactsel.report.player import player_page
from exactsel.studies.compare import compare

sync_api = pytest.importorskip("playwright.sync_api")

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
CHROMIUM = os.environ.get("EXACTSEL_CHROMIUM")
AXE = os.environ.get("EXACTSEL_AXE")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--no-zygote", "--single-process"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """One page of each kind, on disk."""
    folder = tmp_path_factory.mktemp("pages")
    problem = load(INSTANCES / "outlier.npz")
    write_report(folder / "report.html", solve(problem), problem, command="exactsel solve outlier.npz")
    comparison = comparison_page(compare(problem, methods="forward,omp,poss", alone=True))
    (folder / "comparison.html").write_text(comparison, encoding="utf-8")
    searched = solve(problem, record=True, subtrees=False, batch=1, heuristics="forward")
    (folder / "player.html").write_text(player_page(problem, searched), encoding="utf-8")
    write_report(folder / "best.html", best_model(problem, top=5))
    write_report(folder / "path.html", solve_path(problem))
    return folder


class Visit:
    """A page that was opened, with everything it said and asked for."""

    def __init__(self, page, address: str) -> None:
        self.page, self.said, self.asked = page, [], []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        page.goto(address)
        self.asked = [url for url in self.asked if url != address]


@pytest.fixture
def visit(pages):
    with sync_api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS, timeout=1000 * HANG)
        except sync_api.Error:
            pytest.skip("there is no Chromium; set EXACTSEL_CHROMIUM")

        def open_page(name: str, scheme: str = "light") -> Visit:
            context = browser.new_context(color_scheme=scheme, bypass_csp=AXE is not None)
            context.set_default_timeout(1000 * HANG)
            context.add_init_script("window.setInterval = (tick) => { window.tick = tick; return 1; }")
            return Visit(context.new_page(), (pages / name).as_uri())

        yield open_page
        browser.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["report.html", "comparison.html", "player.html", "best.html", "path.html"])
def test_quiet_and_alone(visit, name, scheme):
    seen = visit(name, scheme)
    assert seen.said == []
    assert seen.asked == []
    if AXE:
        seen.page.evaluate(Path(AXE).read_text(encoding="utf-8"))
        for width in (400, 1280):
            seen.page.set_viewport_size({"width": width, "height": 900})
            violations = seen.page.evaluate("axe.run()")["violations"]
            assert [(v["id"], v["nodes"][0]["html"]) for v in violations] == []


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("name", ["report.html", "player.html", "best.html", "path.html"])
def test_no_page_is_wider_than_the_window(visit, name, width):
    page = visit(name).page
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_the_player_obeys(visit):
    page = visit("player.html").page
    count = int(page.inner_text("#count").split(" of ")[1])
    drawn = [page.locator("[data-node]").count()]
    for step in range(2, count + 1):
        page.keyboard.press("ArrowRight")
        assert page.inner_text("#count") == f"{step} of {count}"
        drawn.append(page.locator("[data-node]").count())
    assert drawn == sorted(drawn)
    assert page.is_disabled("#next")
    page.keyboard.press("Home")
    assert page.is_disabled("#back")
    page.click("#next")
    page.click("#next")
    assert page.inner_text("#count") == f"3 of {count}"
    page.keyboard.press("End")
    page.locator('[data-node="0"]').click()
    assert page.inner_text("#panel h3") == "Node 0"
    page.click("#play")  # from the end it begins anew
    assert page.inner_text("#count") == f"1 of {count}"
    page.evaluate("window.tick()")
    assert page.inner_text("#count") == f"2 of {count}"
    page.click("#play")
