"""The table of metrics: names once, what a run reports, what the docs say."""

from dataclasses import replace
from pathlib import Path

from launch.small_vmpo import MAZE
from launch.test_local import TINY

from softcount import metrics
from softcount.runs.run import Run

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"


def test_every_name_stands_once_and_groups_stay_together():
    names = [metric.name for metric in metrics.METRICS]
    assert len(set(names)) == len(names)
    assert [m for group in metrics.by_group().values() for m in group] == list(metrics.METRICS)


def test_the_page_of_the_docs_shows_the_table():
    assert PAGE.read_text().endswith("\n\n" + "\n".join(metrics.markdown()) + "\n")


def test_every_number_of_the_table_is_reported_by_a_run(tmp_path):
    reported = set()
    for agent, config in (("meme", TINY), ("vmpo", MAZE)):
        config = replace(config, steps=600, report_every=200, evaluate_every=300, overlap=False)
        run = Run.create(tmp_path / agent, config)
        reported |= {name for _, report in run.train() for name in report}
        run.close()
    elsewhere = {"eval/capped_score"}  # of worlds with known scores
    elsewhere |= {f"runtime/{name}" for name in ("parameter_lag", "backlog", "restarts")}  # of runs on Ray
    assert {metric.name for metric in metrics.METRICS} - reported == elsewhere
