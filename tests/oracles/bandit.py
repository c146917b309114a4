"""What a forgetting bandit knows, recomputed from its whole history in plain Python."""

import math


def statistics(history, num_arms, kind, discount, window):
    """Returns (counts, sums) from a list of (arm, return), oldest first."""
    counts, sums = [0.0] * num_arms, [0.0] * num_arms
    for age, (arm, gain) in enumerate(reversed(history)):
        if kind == "window" and age >= window:
            break
        weight = discount**age if kind == "discounted" else 1.0
        counts[arm] += weight
        sums[arm] += weight * gain
    return counts, sums


def bounds(history, num_arms, kind, discount, window, bonus):
    counts, sums = statistics(history, num_arms, kind, discount, window)
    return [
        s / c + bonus * math.sqrt(1 / c) if c > 0 else math.inf for c, s in zip(counts, sums, strict=True)
    ]
