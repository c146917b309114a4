"""Episodes and evaluations as the numbers that a run reports of them."""

from __future__ import annotations

import numpy as np

from softcount.roles.actor import Episode
from softcount.roles.evaluator import Evaluation
from softcount.scores import capped_returns
from softcount.types import Array


def describe_episodes(episodes: list[Episode], tasks: tuple[str, ...]) -> dict[str, float]:
    """Returns means over episodes, and over those of each task where there are several."""
    metrics: dict[str, float] = {"charts/episodes": len(episodes)}
    if episodes:
        metrics |= {f"charts/{name}": x for name, x in _means(episodes).items()}
    for task, name in enumerate(tasks if len(tasks) > 1 else ()):
        own = [episode for episode in episodes if episode.task == task]
        metrics[f"charts/episodes/{name}"] = len(own)
        if own:
            metrics |= {f"charts/{measure}/{name}": x for measure, x in _means(own).items()}
    return metrics


def places_of_tasks(tasks: Array, names: tuple[str, ...]) -> dict[str, float]:
    """Returns how many of the visited places lie in each task, where there are several."""
    if len(names) == 1:
        return {}
    return {f"coverage/places/{name}": int((tasks == task).sum()) for task, name in enumerate(names)}


def _means(episodes: list[Episode]) -> dict[str, float]:
    extrinsic, intrinsic, length, _, _ = np.array(episodes, np.float64).T
    return {
        "episodic_return": float(extrinsic.mean()),
        "intrinsic_return": float(intrinsic.mean()),
        "episodic_length": float(length.mean()),
        "success_rate": float((extrinsic > 0).mean()),
    }


def describe_evaluation(evaluation: Evaluation, tasks: tuple[str, ...]) -> dict[str, float]:
    parts = {"": evaluation}
    if len(tasks) > 1:
        parts |= {f"/{name}": evaluation.of_task(task) for task, name in enumerate(tasks)}
    metrics = {}
    for suffix, part in parts.items():
        metrics[f"eval/return{suffix}"] = part.mean_return
        metrics[f"eval/success_rate{suffix}"] = part.success_rate
        metrics[f"eval/length{suffix}"] = float(np.mean([episode.length for episode in part.episodes]))
    return metrics


def describe_scores(evaluation: Evaluation, tasks: tuple[str, ...]) -> dict[str, float]:
    """Returns capped human-normalised scores by task, and their mean where every task has one."""
    returns = {name: evaluation.of_task(task).mean_return for task, name in enumerate(tasks)}
    scores = capped_returns(returns)
    metrics = {f"eval/capped_score/{name}": score for name, score in scores.items() if len(tasks) > 1}
    if len(scores) == len(tasks):
        metrics["eval/capped_score"] = float(np.mean(list(scores.values())))
    return metrics
