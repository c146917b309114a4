"""Algorithm 1 (and Algorithm 2) in plain Python floats, slow and without any trick.

Shares no code with the package: lists, `math`, and `struct` to round stored positions to
float32. `Recode` keeps each count as its logarithm (Decision 5) and discounts them one by one;
`cluster` keeps counts as plain floats.
"""

import math
import struct
from dataclasses import dataclass, field


def float32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def squared_distance(p, q):
    total = 0.0
    for a, b in zip(p, q, strict=True):
        total += (a - b) * (a - b)
    return total


def log_of_sum(log_a, log_b):
    """log(a + b) from log a and log b."""
    big, small = max(log_a, log_b), min(log_a, log_b)
    return big + math.log1p(math.exp(small - big))


@dataclass
class Happened:
    """What one embedding met and caused."""

    reward: float
    soft_count: float
    d2_nearest: float
    nearest: int
    is_far: bool
    is_inserted: bool
    slot: int
    merged_into: int
    d2_ema: float


@dataclass
class Recode:
    """The memory of Algorithm 1 with Decisions 1 to 12."""

    size: int
    neighbours: int = 20
    count_discount: float = 0.999
    embeddings_per_step: int | None = None
    insertion_probability: float = 0.05
    far_tolerance: float = 0.2
    d2_step: float = 1e-4
    reward_constant: float = 0.01
    kernel_epsilon: float = 1e-4
    removal: str = "inverse_square"
    warmup_atoms: int = 200
    atoms: list = field(default_factory=list)
    log_counts: list = field(default_factory=list)
    births: list = field(default_factory=list)
    d2: float = 0.0
    d2_weight: float = 0.0
    steps: int = 0

    def d2_ema(self):
        return self.d2 / self.d2_weight if self.d2_weight else 0.0

    def soft_count(self, distances):
        d2 = self.d2_ema()
        total = 0.0
        for s, log_c in zip(distances, self.log_counts, strict=True):
            if d2 == 0.0:
                similarity = 1.0 if s == 0.0 else 0.0
            elif s < d2:
                similarity = self.kernel_epsilon / (self.kernel_epsilon + s / d2)
            else:
                similarity = 0.0
            total += (1.0 + math.exp(log_c)) * similarity if similarity else 0.0
        return total

    def distances(self, e):
        return [squared_distance(m, e) for m in self.atoms]

    def score(self, e):
        e = [float32(x) for x in e]
        return 1.0 / (math.sqrt(self.soft_count(self.distances(e))) + self.reward_constant)

    def observe(self, e, u, v):
        """Scores and learns one embedding; u is the coin, v draws the victim."""
        e = [float32(x) for x in e]
        distances = self.distances(e)
        soft_count = self.soft_count(distances)
        reward = 1.0 / (math.sqrt(soft_count) + self.reward_constant)
        is_warming_up = len(self.atoms) < min(self.size, self.warmup_atoms)

        if self.atoms:
            k = self.neighbours
            if is_warming_up:
                k = min(k, max(1, len(self.atoms) // 10))
            nearest_k = sorted(distances)[:k]
            mean = sum(nearest_k) / len(nearest_k)
            self.d2 += self.d2_step * (mean - self.d2)
            self.d2_weight += self.d2_step * (1.0 - self.d2_weight)
        g = self.count_discount ** (1.0 / (self.embeddings_per_step or 64))
        self.log_counts = [log_c + math.log(g) for log_c in self.log_counts]

        star = distances.index(min(distances)) if distances else -1
        d2_star = distances[star] if distances else math.inf
        is_far = d2_star > self.far_tolerance * self.d2_ema()
        is_inserted = is_warming_up or (is_far and u < self.insertion_probability)
        slot, heir = star, -1
        if is_inserted and len(self.atoms) < self.size:
            slot = len(self.atoms)
            self.atoms.append(e)
            self.log_counts.append(0.0)
            self.births.append(self.steps)
        elif is_inserted:
            slot = self.victim(v)
            heir = self.heir(slot)
            if heir >= 0:
                self.log_counts[heir] = log_of_sum(self.log_counts[heir], self.log_counts[slot])
            self.atoms[slot], self.log_counts[slot], self.births[slot] = e, 0.0, self.steps
        else:
            c = math.exp(self.log_counts[star])
            self.atoms[star] = [
                float32((c * m + x) / (c + 1.0)) for m, x in zip(self.atoms[star], e, strict=True)
            ]
            self.log_counts[star] = math.log1p(c)
        self.steps += 1
        return Happened(
            reward, soft_count, d2_star, star, is_far, is_inserted, slot, heir, self.d2_ema()
        )  # fmt: skip

    def victim(self, v):
        least = min(self.log_counts)
        if self.removal == "smallest":
            return self.log_counts.index(least)
        power = {"inverse": 1, "inverse_square": 2}[self.removal]
        weights = [math.exp(power * (least - log_c)) for log_c in self.log_counts]
        threshold = v * sum(weights)
        reached = 0.0
        for slot, weight in enumerate(weights):
            reached += weight
            if reached > threshold:
                return slot
        return len(weights) - 1

    def heir(self, victim):
        best, best_distance = -1, math.inf
        for slot, m in enumerate(self.atoms):
            distance = squared_distance(m, self.atoms[victim])
            if slot != victim and distance < best_distance:
                best, best_distance = slot, distance
        return best


def cluster(embeddings, uniforms, *, size, k, discount, kappa, eta, tau_new, warmup):
    """Algorithm 2, the streaming clustering, on its own: centres and counts after a stream.

    `tau_new` is the weight of the new sample; the threshold is freed of its start-up bias and
    clusters exist once they were created (Decisions 1 to 4), `discount` is per embedding.
    """
    centres, counts, d, weight = [], [], 0.0, 0.0
    for e, (u, v) in zip(embeddings, uniforms, strict=True):
        e = [float32(x) for x in e]
        filling = len(centres) < min(size, warmup)
        distances = [squared_distance(m, e) for m in centres]
        if centres:
            few = min(k, max(1, len(centres) // 10)) if filling else k
            near = sorted(distances)[:few]
            d = (1 - tau_new) * d + tau_new * sum(near) / len(near)
            weight = (1 - tau_new) * weight + tau_new
        counts = [discount * c for c in counts]
        star = min(range(len(centres)), key=distances.__getitem__, default=None)
        if filling or (distances[star] > kappa * d / weight and u < eta):
            if len(centres) < size:
                centres.append(e)
                counts.append(1.0)
                continue
            chances = [min(counts) ** 2 / c**2 for c in counts]
            threshold, j = v * sum(chances), 0
            while sum(chances[: j + 1]) <= threshold:
                j += 1
            others = [l for l in range(size) if l != j]  # noqa: E741
            dagger = min(others, key=lambda l: squared_distance(centres[l], centres[j]))  # noqa: E741
            counts[dagger] += counts[j]
            centres[j], counts[j] = e, 1.0
        else:
            c = counts[star]
            centres[star] = [float32((c * m + x) / (c + 1)) for m, x in zip(centres[star], e, strict=True)]
            counts[star] = c + 1
    return centres, counts
