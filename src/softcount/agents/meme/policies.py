"""The family of policies: how mixture j weighs novelty, how far it looks, how an actor explores.

Mixture j maximises r^e + β_j r^i with discount γ_j. Of N mixtures the first exploits and
looks far, the last explores and looks near  ([NGU], [MEME] appendix):

    β_0 = 0,  β_{N−1} = β_max,  else  β_j = β_max σ(10 (2j − (N−2)) / (N−2))
    1 − γ_j = (1 − γ_max)^{(N−1−j)/(N−1)} (1 − γ_min)^{j/(N−1)}

Actor l of L plays ε-greedily on the distilled policy with ε_l = base^{1 + power·l/(L−1)}.
"""

from __future__ import annotations

import math

import numpy as np

from softcount.types import Array


def beta_ladder(num: int, beta_max: float) -> Array:
    """Returns the weight of the intrinsic reward for each mixture, `[N]` float64.

    >>> beta_ladder(4, 1.0).round(5).tolist()
    [0.0, 0.5, 0.99995, 1.0]
    """
    _check_num("num", num)
    if num == 1:
        return np.zeros(1)
    if num == 2:
        return np.array([0.0, beta_max])
    j = np.arange(num)
    betas = beta_max / (1.0 + np.exp(-10.0 * (2 * j - (num - 2)) / (num - 2)))
    betas[0], betas[-1] = 0.0, beta_max
    return betas


def discount_ladder(num: int, maximum: float, minimum: float) -> Array:
    """Returns the discount of each mixture, `[N]` float64, from the longest to the shortest horizon.

    >>> discount_ladder(3, 0.99, 0.9).round(5).tolist()
    [0.99, 0.96838, 0.9]
    """
    _check_num("num", num)
    if not 0 <= minimum <= maximum < 1:
        raise ValueError(f"discounts are {maximum} and {minimum}; expected 0 <= minimum <= maximum < 1")
    if num == 1:
        return np.array([maximum])
    weight = np.arange(num) / (num - 1)
    return 1.0 - np.exp((1 - weight) * math.log(1 - maximum) + weight * math.log(1 - minimum))


def epsilon_ladder(num_actors: int, base: float = 0.4, power: float = 7.0) -> Array:
    """Returns each actor's ε, `[L]` float64; a lone actor gets the middle of the ladder.

    >>> epsilon_ladder(2).round(5).tolist()
    [0.4, 0.00066]
    """
    _check_num("num_actors", num_actors)
    place = np.full(1, 0.5) if num_actors == 1 else np.arange(num_actors) / (num_actors - 1)
    return np.asarray(base ** (1.0 + power * place), np.float64)


def act(logits: Array, mixture: Array, epsilon: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Plays ε-greedily on the argmax of each row's own mixture: actions and their log probabilities.

    `logits` are the distilled policies `[B, N, A]` (or already `[B, A]`), `mixture` is `[B]`.
    Two draws per row are made whatever ε is, so that a stream of randomness stays aligned.
    """
    if logits.ndim == 3:
        logits = logits[np.arange(len(logits)), mixture]
    num_rows, num_actions = logits.shape
    epsilon = np.broadcast_to(np.asarray(epsilon, np.float64), (num_rows,))
    greedy = logits.argmax(-1)
    explores = rng.random(num_rows) < epsilon
    action = np.where(explores, rng.integers(num_actions, size=num_rows), greedy)
    probability = epsilon / num_actions + (1.0 - epsilon) * (action == greedy)
    return action.astype(np.int64), np.log(probability).astype(np.float32)


def _check_num(name: str, num: int) -> None:
    if num < 1:
        raise ValueError(f"{name} is {num}; expected at least 1")
