"""The page in a real browser: it opens without complaint, draws every point, and fits a phone."""

import pytest
from report import browser
from report.runs import TASKS, data_of, train

from softcount.report import write_report

PAGES = ("one", "several", "plain", "bare", "tasks")


@pytest.fixture(scope="module")
def pages(run, plain_run, tasks_run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    bare = folder / "a-folder-with-a-name-that-is-much-too-long__MEME-RECODE-AP__disco-maze__0__<b>"
    bare.mkdir()
    (bare / "config.json").write_bytes((run / "config.json").read_bytes())
    other = train(folder / "other", seed=1, steps=300)
    runs = {"one": [run], "several": [run, other, plain_run, bare], "plain": [plain_run], "bare": [bare]}
    runs["tasks"] = [tasks_run]
    return {name: write_report(r, folder / f"{name}.html", episodes=2) for name, r in runs.items()}


@pytest.fixture(scope="module")
def driver():
    browser.require()
    with browser.open_browser() as opened:
        yield opened


def ask(driver, script, *arguments):
    return driver.execute_script(f"return {script}", *arguments)


def background(driver):
    return ask(driver, "getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize("name", PAGES)
def test_every_curve_is_drawn_with_all_its_points(driver, pages, name):
    browser.look(driver, pages[name])
    driver.execute_script("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    driver.execute_async_script("setTimeout(arguments[0], 150)")
    drawn = {}
    for metric, index, claimed, path in ask(
        driver,
        """[...document.querySelectorAll(".chart path.main")].map((path) =>
           [path.closest(".chart").dataset.metric, path.dataset.run, path.dataset.points,
            path.getAttribute("d")])""",
    ):
        drawn[metric, int(index)] = path.count("M") + path.count("L")
        assert drawn[metric, int(index)] == int(claimed)
    expected = {
        (metric, index): sum(y is not None for y in series["y"])
        for index, shown in enumerate(data_of(pages[name])["runs"])
        for metric, series in shown["curves"]["series"].items()
    }
    assert drawn == expected
    assert len(drawn) > 25 or name == "bare"


def test_points_lie_where_their_numbers_say(driver, pages):
    browser.look(driver, pages["one"])
    series = data_of(pages["one"])["runs"][0]["curves"]["series"]["coverage/places"]["y"]
    path = ask(
        driver, "document.querySelector('[data-metric=\"coverage/places\"] path.main').getAttribute('d')"
    )
    points = [[float(x) for x in piece.split()] for piece in path[1:].split("L")]
    steps = data_of(pages["one"])["runs"][0]["curves"]["steps"]
    width = points[-1][0] - points[0][0]
    for (x, _), step in zip(points, steps, strict=True):
        expected = points[0][0] + (step - steps[0]) / (steps[-1] - steps[0]) * width
        assert x == pytest.approx(expected, abs=0.11)
    height = {y: -points[i][1] for i, y in enumerate(series)}  # pixels count downwards
    (low, bottom), (high, top) = min(height.items()), max(height.items())
    assert low < high
    for y, pixel in height.items():
        assert pixel == pytest.approx(bottom + (y - low) / (high - low) * (top - bottom), abs=0.11)


def test_map_memory_and_clip_show_what_the_data_say(driver, pages):
    browser.look(driver, pages["one"])
    (shown,) = data_of(pages["one"])["runs"]
    assert ask(driver, "document.querySelectorAll('.map rect.seen').length") == shown["worlds"][0]["visited"]
    assert ask(driver, "document.querySelectorAll('.map rect.floor').length") == 17
    assert ask(driver, "document.querySelectorAll('.scatter circle').length") == 30
    bars = ask(
        driver, "[...document.querySelectorAll('.histogram')].map((h) => h.querySelectorAll('rect').length)"
    )
    assert bars == [30, 30]
    corner = "[...document.querySelector('canvas').getContext('2d').getImageData(1, 5, 1, 1).data]"
    assert ask(driver, corner) == [255, 255, 255, 255]  # the agent, at its start
    driver.execute_script("document.querySelector('.player button').click()")
    driver.execute_async_script("setTimeout(arguments[0], 400)")
    assert int(ask(driver, "document.querySelector('canvas').dataset.frame")) > 0
    assert ask(driver, "document.querySelector('.film p').textContent").startswith("step ")


def test_every_task_has_its_own_map_memory_and_charts(driver, pages):
    browser.look(driver, pages["tasks"])
    (shown,) = data_of(pages["tasks"])["runs"]
    for kind in ("map", "memory"):
        titles = ask(driver, f"[...document.querySelectorAll('.{kind} h4.task')].map((t) => t.textContent)")
        assert titles == TASKS
    cells = "[...document.querySelectorAll('.map')].map((m) => m.querySelectorAll('rect.seen').length)"
    assert ask(driver, cells) == [world["visited"] for world in shown["worlds"]]
    atoms = "[...document.querySelectorAll('.scatter')].map((s) => s.querySelectorAll('circle').length)"
    assert ask(driver, atoms) == [len(memory["x"]) for memory in shown["memories"]]
    for name in TASKS:
        chart = f"document.querySelector('[data-group=\"Task {name}\"] .chart').dataset.metric"
        assert ask(driver, chart) == f"coverage/places/{name}"
    driver.execute_script("document.querySelector('#world input[type=checkbox]').click()")
    paths = "[...document.querySelectorAll('.map')].map((m) => m.querySelectorAll('.path').length > 0)"
    assert ask(driver, paths) == [True, False]  # the episode shown is of the first task


def test_tiles_and_table_show_the_last_numbers(driver, pages):
    browser.look(driver, pages["several"])
    runs = data_of(pages["several"])["runs"]
    cells = ask(
        driver, "[...document.querySelectorAll('#final td[data-final=step]')].map((c) => c.textContent)"
    )
    assert cells == [f"{shown['final']['step']:,}" if shown["final"]["step"] else "–" for shown in runs]
    browser.look(driver, pages["one"])
    tile = ask(driver, "document.querySelector('[data-final=\"coverage/places\"] b').textContent")
    assert tile == str(data_of(pages["one"])["runs"][0]["final"]["coverage/places"])


def test_the_system_decides_on_dark_until_the_button_does(driver, pages):
    browser.look(driver, pages["one"], scheme="light")
    light = background(driver)
    browser.look(driver, pages["one"], scheme="dark")
    dark = background(driver)
    assert light != dark
    driver.execute_script("document.getElementById('theme').click()")
    assert background(driver) == light
    assert "Dark" in ask(driver, "document.getElementById('theme').textContent")
    driver.execute_script("document.getElementById('theme').click()")
    assert background(driver) == dark
    driver.execute_script("localStorage.clear()")


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_wider_than_a_phone(driver, pages, name):
    browser.look(driver, pages[name], width=375, height=720)
    driver.execute_script("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    driver.execute_async_script("setTimeout(arguments[0], 150)")
    assert ask(driver, "document.documentElement.scrollWidth") == 375
    wide = ask(
        driver,
        """[...document.querySelectorAll("main *")].filter((node) => !node.closest(".scroll") &&
           node.getBoundingClientRect().right > 375.5).map((node) => node.outerHTML.slice(0, 100))""",
    )
    assert wide == []


def tip_at(driver, share):
    """What is read off the chart of places at a part of its length."""
    driver.execute_script(
        """const chart = document.querySelector("[data-metric='coverage/places'] svg");
        const box = chart.getBoundingClientRect();
        const left = box.left + MARGIN.left, right = box.right - MARGIN.right;
        const at = { clientX: left + arguments[0] * (right - left), clientY: box.top + 20 };
        chart.dispatchEvent(new PointerEvent("pointermove", at));""",
        share,
    )
    return ask(driver, "document.getElementById('tip').textContent")


def test_moving_over_a_chart_reads_the_nearest_reports_of_runs_that_got_there(driver, pages):
    browser.look(driver, pages["several"], height=3000)
    with_bonus, other, plain, _ = data_of(pages["several"])["runs"]
    places = [shown["curves"]["series"]["coverage/places"]["y"] for shown in (with_bonus, other, plain)]
    assert tip_at(driver, 1.0) == f"step {with_bonus['final']['step']}{with_bonus['name']}{places[0][-1]}"
    third = with_bonus["curves"]["steps"][2] / with_bonus["final"]["step"]
    expected = [f"{shown['name']}{y[2]}" for shown, y in zip((with_bonus, other, plain), places)]
    assert tip_at(driver, third) == f"step {with_bonus['curves']['steps'][2]}" + "".join(expected)
    assert ask(driver, "document.querySelectorAll('.hover line').length") > 10  # all charts follow


def test_runs_can_be_hidden_and_the_axis_be_hours(driver, pages):
    browser.look(driver, pages["several"])
    curves = "document.querySelectorAll('[data-metric=\"coverage/places\"] path.main').length"
    assert ask(driver, curves) == 3
    driver.execute_script("document.querySelector('.legend button').click()")
    assert ask(driver, curves) == 2
    path = "document.querySelector('[data-metric=\"coverage/places\"] path.main').getAttribute('d')"
    by_steps = ask(driver, path)
    driver.execute_script("document.querySelector('[data-value=hours]').click()")
    assert ask(driver, path) != by_steps


def test_searching_the_configuration_leaves_what_matches(driver, pages):
    browser.look(driver, pages["several"])
    differing = ask(
        driver, "[...document.querySelectorAll('#differing tr[data-field]')].map((r) => r.dataset.field)"
    )
    assert set(differing) == {"agent", "steps", "seed", "evaluate_every"}
    driver.execute_script(
        """const box = document.querySelector("#configuration input");
        box.value = "count_disc"; box.dispatchEvent(new Event("input"));"""
    )
    rows = "[...document.querySelectorAll('#configuration tr[data-field]')].filter((row) => row.offsetHeight)"
    assert ask(driver, f"{rows}.map((row) => row.dataset.field)") == ["recode.memory.count_discount"]


def test_what_is_not_there_is_said(driver, pages):
    browser.look(driver, pages["plain"])
    text = ask(driver, "document.body.innerText")
    assert "No evaluation was reported" in text
    assert "This agent keeps no memory of atoms" in text
    browser.look(driver, pages["bare"])
    text = ask(driver, "document.body.innerText")
    assert "There are no reports to draw" in text
    assert "There is no checkpoint" in text
    assert "disco-maze__0__<b>" in ask(driver, "document.querySelector('h1').textContent")
