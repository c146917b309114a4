"""What a run reports: name, title, group and kind of every number that is shown somewhere.

The live view, the report and `docs/metrics.md` read this one table. Numbers that are not in it are
written down all the same; the report draws them under "Everything else".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

TIMING_PREFIX = "time/"
"""Names that depend on the clock; everything else of a run repeats exactly."""

ELAPSED = "time/elapsed"
EPISODES_OF = "charts/episodes/"
"""Before the name of a task; every run of several reports it."""


class Metric(NamedTuple):
    """One number of a report."""

    name: str
    title: str
    group: str
    kind: Literal["number", "count", "share"] = "number"
    of_task: str | None = None
    """Its title among those of one task; runs of several report it as `name/task` too."""
    compared: str | None = None
    """Its title in the table that compares runs."""
    short: str | None = None
    """Its label where one line shows the whole report."""


METRICS = (
    Metric("coverage/places", "Places visited", "Exploration", "count", "Places visited", "Places", "places"),
    Metric("coverage/fraction", "Share of all places visited", "Exploration", "share", compared="Coverage"),
    Metric("intrinsic/reward_mean", "Bonus per step", "Exploration"),
    Metric(
        "charts/intrinsic_return", "Intrinsic return", "Exploration", compared="Intrinsic return",
        short="intrinsic",
    ),
    Metric("truth/correlation", "Bonus against true counts, correlation", "Exploration"),
    Metric("truth/visited", "Bonus of visited places, median", "Exploration"),
    Metric("truth/unvisited", "Bonus of other places, median", "Exploration"),
    Metric("truth/unvisited_least", "Bonus of other places, least", "Exploration"),
    Metric("truth/overlooked", "Largest underpayment of a visited place", "Exploration"),
    Metric("truth/noise", "Spread of a place's embeddings", "Exploration"),
    Metric(
        "charts/episodic_return", "Extrinsic return", "Episodes", of_task="Extrinsic return",
        compared="Extrinsic return", short="return",
    ),
    Metric(
        "charts/success_rate", "Episodes with reward", "Episodes", "share", of_task="Episodes with reward"
    ),
    Metric("charts/episodic_length", "Episode length", "Episodes"),
    Metric(
        "eval/success_rate", "Episodes with reward", "Evaluation", "share",
        of_task="Evaluation, episodes with reward", compared="Evaluation success",
    ),
    Metric(
        "eval/return", "Extrinsic return", "Evaluation", of_task="Evaluation, extrinsic return",
        compared="Evaluation return", short="evaluation",
    ),
    Metric("eval/length", "Episode length", "Evaluation"),
    Metric(
        "eval/capped_score", "Score between a random policy and a person", "Evaluation", "share",
        of_task="Score between a random policy and a person", compared="Capped score",
    ),
    Metric("memory/occupied", "Fill", "Memory", "share", of_task="Fill of its memory", short="memory filled"),
    Metric("memory/insertions", "Inserted, last batch", "Memory", "share"),
    Metric(
        "memory/d_ema", "Bandwidth d_ema", "Memory", of_task="Bandwidth d_ema of its memory", short="d_ema"
    ),
    Metric("memory/age_p50", "Median age of atoms, in embeddings", "Memory", "count"),
    Metric("intrinsic/soft_count", "Soft count N(e), last batch", "Memory"),
    Metric("intrinsic/far_fraction", "Far from all atoms, last batch", "Memory", "share"),
    Metric("bandit/best_arm", "Mixture with the best mean", "Mixtures"),
    Metric("bandit/acting_mean", "Mean mixture that acts", "Mixtures"),
    Metric("losses/loss", "Agent", "Losses"),
    Metric("losses/value_loss", "Values", "Losses"),
    Metric("losses/policy_loss", "Policy", "Losses"),
    Metric("losses/policy_gain", "Policy by its own values: 0 chance, 1 greedy", "Losses"),
    Metric("losses/td_error", "TD error", "Losses"),
    Metric("losses/value", "V-MPO: values", "Losses"),
    Metric("losses/policy", "V-MPO: policy", "Losses"),
    Metric("losses/eta", "V-MPO: temperature", "Losses"),
    Metric("losses/effective_samples", "V-MPO: evenness of the weights", "Losses", "share"),
    Metric("losses/kl_distance", "V-MPO: distance from the policy that acted", "Losses"),
    Metric("losses/entropy", "V-MPO: entropy of the policy", "Losses"),
    Metric("representation/loss", "Representation", "Losses"),
    Metric("representation/accuracy", "Representation, accuracy", "Losses", "share"),
    Metric("charts/SPS", "Actor steps per second", "Speed", "count"),
    Metric("charts/updates", "Updates of the learner", "Speed", "count", compared="Updates"),
    Metric("replay/ratio", "Replay ratio", "Speed"),
    Metric("runtime/parameter_lag", "On Ray: updates since the parameters that acted", "Speed"),
    Metric("runtime/backlog", "On Ray: batches that the learner is behind", "Speed"),
    Metric("runtime/restarts", "On Ray: roles started anew", "Speed", "count"),
)  # fmt: skip
"""Every number that is shown, group by group, in the order in which it is shown."""


def by_group() -> dict[str, list[Metric]]:
    """The table, a list for each group.

    >>> list(by_group())
    ['Exploration', 'Episodes', 'Evaluation', 'Memory', 'Mixtures', 'Losses', 'Speed']
    """
    groups: dict[str, list[Metric]] = {}
    for metric in METRICS:
        groups.setdefault(metric.group, []).append(metric)
    return groups


def markdown() -> Iterator[str]:
    """The table as the docs show it, line by line."""
    yield "| name | what it is | group |"
    yield "|---|---|---|"
    for metric in METRICS:
        yield f"| `{metric.name}` | {metric.title} | {metric.group} |"
