"""The live page: served to whoever has its address, and in a browser while a run trains."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest
from report import browser
from report.runs import data_of

from softcount.report.watch import WatchServer

WORDS = (
    "--env-options size=7 --num-envs 8 --steps 1000000 --report-every 160 --evaluate-every 0 "
    "--recode.memory.size 60 --meme.replay.newest 0"
)


@contextmanager
def serving(folders):
    with WatchServer(folders) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def server(run, plain_run):
    with serving([run, plain_run]) as opened:
        yield opened


def get(url, **headers):
    """Status, headers and body of an answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def test_the_page_is_served_with_the_runs_it_is_of(server):
    status, headers, page = get(server.url)
    assert status == 200
    assert headers["Cache-Control"] == "no-store"
    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert "connect-src 'self'" in page
    assert [run["name"] for run in data_of(page)["runs"]] == ["with-bonus", "plain"]


def test_data_are_sent_once_until_something_changes(server, plain_run):
    status, headers, body = get(server.url + "data")
    assert status == 200
    assert len(json.loads(body)["runs"]) == 2
    assert get(server.url + "data", **{"If-None-Match": headers["ETag"]})[::2] == (304, "")
    os.utime(plain_run / "metrics.jsonl")
    assert get(server.url + "data", **{"If-None-Match": headers["ETag"]})[0] == 200


@pytest.mark.parametrize(
    "path", ["", "data", "wrong/", "wrong/data", "{token}", "{token}/x", "{token}/../data"]
)
def test_without_the_token_nothing_is_served(server, path):
    root = server.url.removesuffix(f"{server.token}/")
    status, _, body = get(root + path.format(token=server.token))
    assert (status, body) == (404, "not here\n")


@pytest.mark.parametrize("name", ["evil.example", "127.0.0.1", "127.0.0.1:1"])
def test_another_name_of_the_machine_is_not_answered(server, name):
    assert get(server.url, Host=name)[0] == 404  # a site whose name leads to this machine


def test_only_this_machine_is_listened_to(server):
    assert server.server_address[0] == "127.0.0.1"
    assert len(server.token) >= 20


def test_two_servers_have_different_tokens(run, server):
    with WatchServer([run]) as other:
        assert other.token != server.token


def test_the_command_tells_where_the_page_is_and_ends_with_an_interrupt(run):
    command = [sys.executable, "-m", "softcount", "watch", str(run)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().startswith("watching 1 run;")
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{20,}/", url)
        assert get(url)[0] == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
        assert process.stderr.read() == ""


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (found := condition()) is not None:
            return found
        time.sleep(0.1)
    raise AssertionError(f"not so after {seconds} s")


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    """A run that trains while it is watched; stopped in the end."""
    folder = tmp_path_factory.mktemp("watched") / "training"
    command = [sys.executable, "-m", "softcount", "train", "MEME-RECODE-AP", "--run", str(folder)]
    process = subprocess.Popen([*command, *WORDS.split()], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_for(lambda: True if (folder / "config.json").exists() else process.poll())
        yield folder
        assert process.poll() is None  # it trained all the while
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)


def test_the_page_moves_while_a_run_trains(training, plain_run):
    browser.require()
    with serving([training, plain_run]) as server, browser.open_browser() as driver:

        def ask(script):
            return driver.execute_script(f"return {script}")

        driver.get(server.url)
        number = "document.querySelector('#final tbody tr td[data-final=step]')"
        atoms = (
            "[...document.querySelectorAll('.memory[data-run=\"0\"] circle')].map(c => c.getAttribute('cx'))"
        )
        wait_for(lambda: ask(atoms) or None)
        step, where = ask(f"{number}.textContent"), ask(atoms)
        at = ask("RUNS[0].checkpoint")
        driver.execute_script(
            """window.moves = 0; const animate = Element.prototype.animate;
            Element.prototype.animate = function (...how) { moves += 1; return animate.apply(this, how); };"""
        )
        ask("document.querySelector('[data-value=visits]').click()")
        wait_for(lambda: True if ask(f"{number}.textContent") != step and ask(atoms) != where else None)
        assert wait_for(lambda: new if (new := ask("RUNS[0].checkpoint")) > at else None)
        assert wait_for(lambda: ask("moves") or None)  # atoms went where they are now, new ones appeared
        said = ask("document.querySelector('.memory[data-run=\"0\"] p').textContent")
        assert said == f"at step {ask('RUNS[0].checkpoint'):,}"
        pressed = "document.querySelector('[data-value=visits]').getAttribute('aria-pressed')"
        assert ask(pressed) == "true"  # what a reader chose stays chosen
        points = ask(
            "Number(document.querySelector('[data-metric=\"charts/SPS\"] path.main').dataset.points)"
        )
        assert points == ask("RUNS[0].curves.steps.length")
        lines = ask("[...document.querySelectorAll('#live > div')].map((line) => line.className)")
        assert lines == ["soft training", "soft done"]
        assert driver.get_log("browser") == []


def test_a_page_whose_server_is_gone_says_so(run):
    browser.require()
    with browser.open_browser() as driver:
        with serving([run]) as server:
            driver.get(server.url)
            assert driver.execute_script("return document.querySelectorAll('#live .lost').length") == 0
        lost = "return document.querySelector('#live .lost')?.textContent"
        assert "is gone" in wait_for(lambda: driver.execute_script(lost))
