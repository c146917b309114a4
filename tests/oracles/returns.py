"""Returns in plain Python: one environment, one mixture, straight from the definition.

Row t: observation, action a_t, and the reward of arriving there. G(t) is defined for pairs
(t, t+1) of one episode and is computed by recursion from t upwards, not by a loop backwards.
"""

import math


def h(x, eps):
    return math.copysign(math.sqrt(abs(x) + 1) - 1, x) + eps * x


def h_inverse(x, eps):
    root = (math.sqrt(1 + 4 * eps * (abs(x) + 1 + eps)) - 1) / (2 * eps)
    return math.copysign(root**2 - 1, x)


def expectation(policy, values):
    return sum(p * v for p, v in zip(policy, values, strict=True))


def trace(form, q, policy, action, lam, kappa, mu):
    """How much of the correction at this row survives."""
    if form == "peng":
        return lam
    if form == "watkins":
        return lam if q[action] == max(q) else 0.0
    if form == "retrace":
        return lam * min(1.0, policy[action] / mu)
    return lam * sum(p for p, x in zip(policy, q, strict=True) if q[action] >= x - kappa * abs(x))


def returns(rows, gamma, lam, kappa, form):
    """Returns G for t = 0 … T−1 of T+1 rows; None where (t, t+1) is no transition.

    A row is a dict: q (rescaled), values, policy, action, mu, reward, first, last, terminal.
    """
    num = len(rows)

    def value(row):
        if form == "watkins":
            return max(row["values"])
        return expectation(row["policy"], row["values"])

    def is_pair(t):
        return t + 1 < num and not rows[t]["last"] and not rows[t + 1]["first"]

    def target(t):
        there = rows[t + 1]
        if there["terminal"]:
            return there["reward"]
        if not is_pair(t + 1):
            return there["reward"] + gamma * value(there)
        c = trace(form, there["q"], there["policy"], there["action"], lam, kappa, there["mu"])
        base = there["values"][there["action"]] if form == "retrace" else value(there)
        return there["reward"] + gamma * (value(there) + c * (target(t + 1) - base))

    return [target(t) if is_pair(t) else None for t in range(num - 1)]
