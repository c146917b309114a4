"""Every bonus and normaliser once more, in plain Python floats; shares no code with the package."""

from __future__ import annotations

import math


def debiased_average(values, step):
    """The moving average that weighs value i with step·(1−step)^(n−1−i), weights made to sum to 1."""
    weights = [step * (1 - step) ** (len(values) - 1 - i) for i in range(len(values))]
    return sum(w * x for w, x in zip(weights, values)) / sum(weights)


def divisor(mean, std, floor=1e-8, least_variation=0.01):
    return max(std, least_variation * abs(mean), floor)


def reward_std(rewards, step, gathered):
    """r_n divided by the moving standard deviation of r_1 … r_n; the first `gathered` are paid 0."""
    paid = []
    for n in range(1, len(rewards) + 1):
        seen = rewards[:n]
        mean = debiased_average(seen, step)
        square = debiased_average([x * x for x in seen], step)
        std = math.sqrt(max(square - mean * mean, 0.0))
        paid.append(0.0 if n <= gathered else rewards[n - 1] / divisor(mean, std))
    return paid


def return_std(rewards, env_ids, discount, gathered):
    """RND: a running discounted sum per environment; the spread of all sums seen so far divides."""
    sums, seen, paid = {}, [], []
    for r, env_id in zip(rewards, env_ids):
        sums[env_id] = discount * sums.get(env_id, 0.0) + r
        seen.append(sums[env_id])
        mean = sum(seen) / len(seen)
        std = math.sqrt(sum((x - mean) ** 2 for x in seen) / len(seen))
        paid.append(0.0 if len(seen) <= gathered else r / divisor(mean, std))
    return paid


def by_mean(rewards, step):
    return [r / max(debiased_average(rewards[: n + 1], step), 1e-8) for n, r in enumerate(rewards)]


def prioritised(batches, step):
    """BYOL-Explore: per batch, max(l/σ − μ, 0) with moving σ of l and moving mean μ of l/σ."""
    means, squares, scaled, paid = [], [], [], []
    for batch in batches:
        means.append(sum(batch) / len(batch))
        squares.append(sum(x * x for x in batch) / len(batch))
        mean, square = debiased_average(means, step), debiased_average(squares, step)
        sigma = divisor(mean, math.sqrt(max(square - mean * mean, 0.0)))
        scaled.append(sum(x / sigma for x in batch) / len(batch))
        mu = debiased_average(scaled, step)
        paid.append([max(x / sigma - mu, 0.0) for x in batch])
    return paid


def modulators(errors, maximum):
    """NGU's life-long factor: clip(1 + (err − mean)/std, 1, L) over all errors so far."""
    factors = []
    for n in range(1, len(errors) + 1):
        seen = errors[:n]
        mean = sum(seen) / n
        std = math.sqrt(sum((x - mean) ** 2 for x in seen) / n)
        alpha = 1.0 if std == 0.0 else 1.0 + (errors[n - 1] - mean) / std
        factors.append(min(max(alpha, 1.0), maximum))
    return factors


def place_counts(places, firsts):
    counts, paid = {}, []
    for place, is_first in zip(places, firsts):
        if place < 0:
            paid.append(0.0)
            continue
        counts[place] = counts.get(place, 0) + 1
        paid.append(0.0 if is_first else 1 / math.sqrt(counts[place]))
    return paid
