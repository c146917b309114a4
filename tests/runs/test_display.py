"""One line per report where there is no terminal."""

import re

from softcount.runs.display import Display


def test_a_line_says_how_far_how_fast_and_how_long_still(capsys):
    with Display("MEME", 10_000) as display:
        display.show(2_500, {"charts/SPS": 50.0, "coverage/places": 7.0})
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("MEME  2,500/10,000  50 steps/s, 0:02:30 left")
    assert re.search(r"places\S* 7\b", line)


def test_without_a_speed_nothing_is_foretold(capsys):
    with Display("MEME", 100) as display:
        display.show(0, {"charts/episodic_return": float("nan")})
    said = capsys.readouterr().out
    assert "0 steps/s, ? left" in said
    assert " -" in said
