"""The planner in a real browser: as wide as a phone and as a desk, light and dark, by mouse and by keyboard."""

from __future__ import annotations

import json
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="playwright is not installed: the planner is not looked at")

from playwright import sync_api as playwright
from test_planner_equals_command_line import RUNS

import lastiterate as li
from browsing import DESK, PHONE, needs_browser
from lastiterate.cli import main
from lastiterate.runs.files import run_from_dict, run_to_toml
from lastiterate.web.serve import example, planner

pytestmark = needs_browser
DELTA = 1e-5


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    page = planner(None, delta=DELTA)
    server = page.server()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [page.listening]})
    thread.start()
    yield page.address
    server.should_exit = True
    thread.join()


class Seen:
    """A page, what its console said, and where it asked."""

    def __init__(self, context: Any, address: str) -> None:
        self.page, self.said, self.asked = context.new_page(), [], []
        self.page.on("console", lambda one: self.said.append(one.text))
        self.page.on("pageerror", lambda one: self.said.append(str(one)))
        self.page.on("request", lambda one: self.asked.append(one.url))
        self.page.goto(address)
        self.page.wait_for_selector("#epsilon[data-value]")

    def epsilon(self) -> float:
        """As soon as it is that of the run on the page."""
        self.page.wait_for_selector("body:not(.stale)")
        return float(self.page.get_attribute("#epsilon", "data-value"))


@pytest.fixture
def seen(browser: Any, address: str) -> Iterator[Seen]:
    context = browser.new_context(viewport={"width": DESK[0], "height": DESK[1]}, accept_downloads=True)
    yield Seen(context, address)
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_the_page_is_whole_and_asks_nobody_else(browser: Any, address: str, size: tuple[int, int], scheme: str) -> None:
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, reduced_motion="reduce"
    )
    seen = Seen(context, address)
    page = seen.page
    page.wait_for_selector("#growth canvas")
    assert seen.said == []
    assert [url for url in seen.asked if not url.startswith(address)] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    if size is PHONE:
        page.set_viewport_size({"width": 320, "height": 568})
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        page.set_viewport_size({"width": size[0], "height": size[1]})
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, paper.removeprefix("rgb(").rstrip(")").split(", "))) / 3 / 255
    assert brightness < 0.2 if scheme == "dark" else brightness > 0.9
    assert page.evaluate("getComputedStyle(document.getElementById('epsilon')).transitionDuration") == "0s"
    for chart in ("growth", "attack"):
        assert page.evaluate(f"document.querySelector('#{chart} canvas').clientWidth") > 250
    columns = page.locator("#controls").bounding_box()["x"] < page.locator("#answer").bounding_box()["x"]
    assert columns == (size is DESK)
    assert "2.17" in page.get_attribute("#growth", "aria-label")
    context.close()


def test_a_slider_changes_the_answer_with_the_keyboard_alone(seen: Seen) -> None:
    page, before = seen.page, seen.epsilon()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('aria-label')") == "noise, slider":
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    seen.epsilon()
    std = float(page.get_by_label("noise standard deviation").input_value())
    assert std > 0.003
    assert seen.epsilon() < before
    run = example()
    expected = li.Run(run.loss, run.batches, run.step_size, li.OnMeanGradient(std), run.steps)
    assert seen.epsilon() == pytest.approx(li.account(expected, DELTA).epsilon, rel=1e-12)


def test_whoever_is_at_a_control_stays_there(seen: Seen) -> None:
    page = seen.page
    page.get_by_label("batches", exact=True).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.value") == "full"
    assert seen.epsilon() > 0


def test_what_is_wrong_is_said_beside_its_field(seen: Seen) -> None:
    page = seen.page
    field = page.get_by_label("step size length per gradient norm")
    field.fill("<b>no</b>")
    field.press("Tab")
    error = page.locator("[data-error=step_size]")
    playwright.expect(error).to_contain_text("step_size must be")
    playwright.expect(error).to_contain_text("<b>no</b>")
    assert field.get_attribute("aria-invalid") == "true"
    assert page.get_attribute("#epsilon", "data-value") is None
    field.fill("0.5")
    field.press("Enter")
    playwright.expect(error).to_be_empty()
    assert seen.epsilon() == li.account(example(), DELTA).epsilon
    assert [one for one in seen.said if "422" not in one] == []  # which the browser itself notes


def test_kinds_of_batches_and_losses_keep_what_they_share(seen: Seen) -> None:
    page = seen.page
    page.get_by_label("batches", exact=True).select_option("poisson")
    page.get_by_label("loss", exact=True).select_option("huber")
    page.get_by_label("neighbouring data sets").select_option("zero_out")
    with page.expect_download() as started:
        page.get_by_role("button", name="TOML", exact=True).click()
    found = run_from_dict(tomllib.loads(Path(started.value.path()).read_text(encoding="utf-8")))
    loss, batches = li.losses.huber(feature_norm=1.0, l2=0.01), li.Poisson(60_000, rate=0.025)
    run = example()
    assert found == li.Run(loss, batches, 0.5, run.noise, li.epochs(50), adjacency=li.ZERO_OUT)


def test_loss_and_noise_have_one_clip(seen: Seen) -> None:
    page = seen.page
    page.get_by_label("noise is added").select_option("on_gradient_sum")
    page.get_by_label("loss", exact=True).select_option("network")
    clip = page.locator("[data-place=noise]").get_by_label("clip gradients at")
    clip.fill("2")
    clip.press("Tab")
    run = li.Run(
        li.losses.network(clip=2.0, l2=0.01),
        example().batches,
        0.5,
        li.OnGradientSum(multiplier=1.0, clip=2.0),
        li.epochs(50),
    )
    assert seen.epsilon() == li.account(run, DELTA).epsilon


def test_the_noise_of_a_target_is_found(seen: Seen) -> None:
    page = seen.page
    page.get_by_role("button", name="the noise").click()
    seen.epsilon()
    expected = li.calibrate(example(), epsilon=1.0, delta=DELTA)
    assert float(page.get_by_label("noise standard deviation").input_value()) == expected.noise.std
    assert seen.epsilon() == li.account(expected, DELTA).epsilon <= 1
    assert page.locator("#found").text_content().startswith("To meet ε = 1: standard deviation of the noise")


@pytest.mark.parametrize("name", ["shuffled, convex, momentum", "bins, convex, zero-out"])
def test_a_file_says_on_the_page_what_it_says_to_the_command_line(
    name: str, seen: Seen, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.toml"
    file.write_text(run_to_toml(RUNS[name]), encoding="utf-8")
    assert main(["account", str(file), "--delta", str(DELTA), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    seen.page.set_input_files("#file", file)
    seen.epsilon()
    assert seen.epsilon() == pytest.approx(said["epsilon"], rel=1e-12, abs=0)
    seen.page.wait_for_selector(f"#theorems[data-epsilon='{said['epsilon']}']")
    shown = dict(json.loads(seen.page.get_attribute("#theorems", "data-values")))
    assert shown == {one["theorem"]: one["epsilon"] for one in said["guarantees"]}


def test_a_plan_becomes_the_run(seen: Seen) -> None:
    page = seen.page
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    page.get_by_label("passes over the data at most").fill("40")
    page.get_by_role("button", name="Compare plans").click()
    page.wait_for_selector("#plans-found:not([hidden])")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    page.get_by_role("button", name="Use plan 1").click()
    assert seen.epsilon() <= 1
    expected = li.plan(
        loss=li.losses.logistic(feature_norm=1.0), records=60_000, features=20, epsilon=1.0, delta=DELTA, passes=40
    )
    assert seen.epsilon() == expected.best.epsilon


def test_an_old_answer_never_follows_a_newer_one_and_cancel_ends_the_wait(seen: Seen) -> None:
    page, held = seen.page, []
    page.route("**/ask", lambda route: held.append(route) if not held else route.continue_())
    epochs = page.get_by_label("epochs passes over the data")
    epochs.fill("3")
    epochs.press("Tab")
    while not held:
        page.wait_for_timeout(20)
    epochs.fill("7")
    epochs.press("Tab")
    newer = seen.epsilon()
    held[0].fulfill(
        status=200, body='{"part": "answer", "epsilon": 99, "shown": "99", "sentences": [], "theorem": ""}\n'
    )
    page.wait_for_timeout(200)
    assert seen.epsilon() == newer
    held.clear()
    epochs.fill("4")
    epochs.press("Tab")
    while not held:
        page.wait_for_timeout(20)
    page.wait_for_selector("#work:not([hidden])")
    cancel = page.get_by_role("button", name="Cancel", exact=True)
    cancel.focus()
    page.keyboard.press("Enter")
    assert not cancel.is_visible()
    assert "Cancelled" in page.locator("#trouble").text_content()
