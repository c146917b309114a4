"""NGU's episodic bonus for one environment, in plain Python floats."""

import math


class Episodic:
    def __init__(self, capacity=30_000, k=10, epsilon=1e-4, xi=0.008, c=0.001, s_max=8.0):
        self.capacity, self.k, self.epsilon, self.xi, self.c, self.s_max = capacity, k, epsilon, xi, c, s_max
        self.stored = []
        self.distances = []  # every neighbour distance ever used: d²_m is their plain mean

    def reset(self):
        self.stored = []

    def bonus(self, e, distances):
        """The reward, given all neighbour distances that the mean shall take in."""
        if len(self.stored) < self.k:
            return 0.0
        mean = sum(distances) / len(distances)
        total = 0.0
        for s in self.nearest(e):
            rho = s / mean if mean > 0 else 0.0
            total += self.epsilon / (max(rho - self.xi, 0.0) + self.epsilon)
        similarity = math.sqrt(total) + self.c
        return 0.0 if similarity > self.s_max else 1.0 / similarity

    def nearest(self, e):
        return sorted(sum((a - b) ** 2 for a, b in zip(m, e, strict=True)) for m in self.stored)[: self.k]

    def score(self, e):
        return self.bonus(e, self.distances + self.nearest(e))

    def observe(self, e):
        if len(self.stored) >= self.k:
            self.distances = self.distances + self.nearest(e)
        reward = self.bonus(e, self.distances)
        self.stored = [*self.stored, list(e)][-self.capacity :]
        return reward
