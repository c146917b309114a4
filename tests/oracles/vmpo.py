"""V-MPO in plain Python, transition by transition, straight from the definitions.

A row is a dict: reward, intrinsic, values (one per task, in normalised units), policy, behaviour, drawn,
first, last, terminal, task. Policies are lists: logits by choice, or a pair (mean, std).
"""

import math


def softmax(logits):
    top = max(logits)
    weights = [math.exp(x - top) for x in logits]
    return [w / sum(weights) for w in weights]


def categorical_log_prob(choices, drawn):
    return sum(math.log(softmax(logits)[a]) for logits, a in zip(choices, drawn, strict=True))


def categorical_kl(before, after):
    total = 0.0
    for old, new in zip(before, after, strict=True):
        total += sum(p * math.log(p / q) for p, q in zip(softmax(old), softmax(new), strict=True))
    return {"kl": [total]}


def gaussian_log_prob(policy, drawn):
    mean, std = policy
    parts = zip(mean, std, drawn, strict=True)
    return sum(
        math.log(math.exp(-((u - m) ** 2) / (2 * s * s)) / (s * math.sqrt(2 * math.pi))) for m, s, u in parts
    )


def gaussian_kl(before, after, per_dimension=False):
    """KL of N(μ_b, σ_b²) to N(μ, σ_b²), and to N(μ_b, σ²): the whole KL with one half held fixed each."""

    def whole(m0, s0, m1, s1):
        return math.log(s1 / s0) + (s0**2 + (m0 - m1) ** 2) / (2 * s1**2) - 0.5

    (mean_b, std_b), (mean, std) = before, after
    of_mean = [whole(m0, s0, m1, s0) for m0, s0, m1 in zip(mean_b, std_b, mean, strict=True)]
    of_cov = [whole(m0, s0, m0, s1) for m0, s0, s1 in zip(mean_b, std_b, std, strict=True)]
    if per_dimension:
        return {"mean": of_mean, "cov": of_cov}
    return {"mean": [sum(of_mean)], "cov": [sum(of_cov)]}


def is_pair(rows, t):
    return t + 1 < len(rows) and not rows[t]["last"] and not rows[t + 1]["first"]


def target(rows, values, t, gamma, lam, beta):
    """G of the transition t → t+1, by recursion; `values` are in plain units."""
    there = rows[t + 1]
    paid = there["reward"] + beta * there["intrinsic"]
    if there["terminal"]:
        return paid
    onward = values[t + 1]
    if is_pair(rows, t + 1):
        onward += lam * (target(rows, values, t + 1, gamma, lam, beta) - values[t + 1])
    return paid + gamma * onward


def better_half(advantages, fraction=0.5):
    num = max(1, math.floor(fraction * len(advantages)))
    threshold = sorted(advantages, reverse=True)[num - 1]
    return [a >= threshold for a in advantages]


def e_step(advantages, chosen, eta, limit):
    """Returns ψ, L_η and KL(ψ ‖ uniform over the chosen)."""
    best = [a for a, c in zip(advantages, chosen, strict=True) if c]
    top = max(best)
    total = math.fsum(math.exp((a - top) / eta) for a in best)
    psi = [math.exp((a - top) / eta) / total if c else 0.0 for a, c in zip(advantages, chosen, strict=True)]
    loss = eta * limit + top + eta * math.log(total / len(best))
    kl = math.fsum(p * math.log(p * len(best)) for p in psi if p > 0)
    return psi, loss, kl


def popart(mean, second, scale, targets, step, lower, upper):
    """One task's statistics after n single steps, each with the mean of the batch's n returns."""
    if not targets:
        return mean, second, scale
    average = sum(targets) / len(targets)
    square = sum(x * x for x in targets) / len(targets)
    for _ in targets:
        mean += step * (average - mean)
        second += step * (square - second)
    return mean, second, math.sqrt(min(max(second - mean * mean, lower**2), upper**2))


def alphas_of(row, alphas, num, settings):
    """The multipliers that hold this row: those of its task, or the only ones there are."""
    return alphas[row["task"] * num : (row["task"] + 1) * num] if settings["regions"] else alphas


def losses(traces, statistics, eta, alphas, limits, settings):
    """All losses of a batch of traces (lists of rows).

    statistics  by task: (mean, second, scale)
    alphas      by name: a list; with regions, those of task 0, then of task 1 and so on
    eta         a number; with heats, one by task
    settings    gamma, lam, beta, fraction, eta_limit, step, lower, upper, by_task, heats, regions, normalise,
                log_prob, kl
    """
    found = []
    for rows in traces:
        values = [statistics[r["task"]][2] * r["values"][r["task"]] + statistics[r["task"]][0] for r in rows]
        for t in range(len(rows) - 1):
            if is_pair(rows, t):
                g = target(rows, values, t, settings["gamma"], settings["lam"], settings["beta"])
                found.append((rows[t], values[t], g))
    new = {
        task: popart(
            *old,
            [g for row, _, g in found if row["task"] == task],
            settings["step"],
            settings["lower"],
            settings["upper"],
        )
        for task, old in enumerate(statistics)
    }
    units = [new[row["task"]] for row, _, _ in found]
    value = [
        0.5 * ((v - unit[0]) / unit[2] - (g - unit[0]) / unit[2]) ** 2
        for (_, v, g), unit in zip(found, units, strict=True)
    ]
    advantages = [
        (g - v) / (unit[2] if settings["normalise"] else 1.0)
        for (_, v, g), unit in zip(found, units, strict=True)
    ]
    chosen = better_half(advantages, settings["fraction"])
    if settings["by_task"]:
        chosen = [False] * len(found)
        for task in new:
            own = [i for i, (row, _, _) in enumerate(found) if row["task"] == task]
            if own:
                for i, keep in zip(own, better_half([advantages[i] for i in own], settings["fraction"])):
                    chosen[i] = keep
    if settings["heats"]:
        psi, temperature = [0.0] * len(found), 0.0
        for task in new:
            own = [i for i, (row, _, _) in enumerate(found) if row["task"] == task and chosen[i]]
            if own:
                share = len(own) / sum(chosen)
                part, loss, _ = e_step(
                    [advantages[i] for i in own], [True] * len(own), eta[task], settings["eta_limit"]
                )
                temperature += share * loss
                for i, weight in zip(own, part, strict=True):
                    psi[i] = share * weight
    else:
        psi, temperature, _ = e_step(advantages, chosen, eta, settings["eta_limit"])
    likely = [settings["log_prob"](row["policy"], row["drawn"]) for row, _, _ in found]
    distances = [settings["kl"](row["behaviour"], row["policy"]) for row, _, _ in found]
    result = {
        "value": sum(value) / len(value),
        "policy": -sum(p * x for p, x in zip(psi, likely, strict=True)),
        "temperature": temperature,
    }
    for name in distances[0]:
        num = len(distances[0][name])
        means = [sum(d[name][k] for d in distances) / len(distances) for k in range(num)]
        result[f"{name}_penalty"] = sum(
            alpha * (limits[name] - kl) + alpha * kl
            for (row, _, _), distance in zip(found, distances, strict=True)
            for alpha, kl in zip(alphas_of(row, alphas[name], num, settings), distance[name], strict=True)
        ) / len(found)
        result[f"{name}_distance"] = sum(means)
    result["chosen"] = sum(chosen) / len(chosen)
    result["effective_samples"] = 1 / sum(p * p for p in psi) / sum(chosen)
    return result, new
