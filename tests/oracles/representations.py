"""Losses of the representations in plain Python floats, one number at a time.

Arguments are nested lists, time first; nothing here is shared with the package.
"""

from __future__ import annotations

import math


def cross_entropy(logits, action):
    """−log softmax(logits)[action]."""
    top = max(logits)
    return top + math.log(sum(math.exp(x - top) for x in logits)) - logits[action]


def action_prediction_loss(embedding, is_first, is_last, action, classify, last=None):
    """Mean cross-entropy over the transitions of a batch; embedding[t][b] is a list of floats."""
    losses = []
    time, batch = len(embedding), len(embedding[0])
    for t in range(time - 1):
        if last is not None and t < time - 1 - last:
            continue
        for b in range(batch):
            if not is_last[t][b] and not is_first[t + 1][b]:
                losses.append(cross_entropy(classify(embedding[t][b] + embedding[t + 1][b]), action[t][b]))
    return sum(losses) / len(losses)


def casm_tokens(embedding, action_vectors, is_first, hides_state, no_state, no_action, no_action_yet):
    """The pairs of one trace: embedding[t], incoming action_vectors[t]; exactly one half is hidden."""
    tokens = []
    for t in range(len(embedding)):
        if t == 0 or is_first[t]:
            tokens.append(embedding[t] + no_action_yet)
        elif hides_state[t]:
            tokens.append(no_state + action_vectors[t])
        else:
            tokens.append(embedding[t] + no_action)
    return tokens


def gate(x, y, w, u, u_g, bias):
    """GRU gate; w = (W_r, W_z, W_g), u = (U_r, U_z), matrices as lists of rows."""

    def times(matrix, vector):
        return [sum(m * v for m, v in zip(row, vector, strict=True)) for row in matrix]

    def sigmoid(value):
        return 1 / (1 + math.exp(-value))

    r = [sigmoid(a + b) for a, b in zip(times(w[0], y), times(u[0], x), strict=True)]
    z = [sigmoid(a + b - c) for a, b, c in zip(times(w[1], y), times(u[1], x), bias, strict=True)]
    reset = [a * b for a, b in zip(r, x, strict=True)]
    h = [math.tanh(a + b) for a, b in zip(times(w[2], y), times(u_g, reset), strict=True)]
    return [(1 - k) * a + k * b for k, a, b in zip(z, x, h, strict=True)]


def sinusoid(distance, width):
    """R_d: sines of falling frequency, then cosines."""
    angles = [distance * 10000.0 ** (-(2 * i) / width) for i in range(width // 2)]
    return [math.sin(a) for a in angles] + [math.cos(a) for a in angles]


def relative_attention(q, k, v, r, u, p, num_past, is_visible):
    """One head: outputs for queries q, keys k, values v; r[d] is the projected code of distance d."""
    size = len(q[0])

    def dot(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True))

    outputs = []
    for i in range(len(q)):
        scores = []
        for j in range(len(k)):
            if not is_visible[i][j]:
                scores.append(None)
                continue
            content = dot([a + b for a, b in zip(q[i], u, strict=True)], k[j])
            position = dot([a + b for a, b in zip(q[i], p, strict=True)], r[i + num_past - j])
            scores.append((content + position) / math.sqrt(size))
        top = max(s for s in scores if s is not None)
        weights = [0.0 if s is None else math.exp(s - top) for s in scores]
        total = sum(weights)
        outputs.append(
            [sum(w * x[d] for w, x in zip(weights, v, strict=True)) / total for d in range(len(v[0]))]
        )
    return outputs


def byol_losses(predict, target, is_first, horizon):
    """loss(t, i) of one trace as {(t, i): value}; predict(t, i) and target[s] are lists of floats."""

    def unit(x):
        norm = math.sqrt(sum(a * a for a in x))
        return [a / norm for a in x]

    losses = {}
    for t in range(len(target)):
        for i in range(1, horizon + 1):
            if t + i >= len(target) or any(is_first[s] for s in range(t + 1, t + i + 1)):
                break
            guess, truth = unit(predict(t, i)), unit(target[t + i])
            losses[t, i] = sum((a - b) ** 2 for a, b in zip(guess, truth, strict=True))
    return losses


def byol_loss(per_trace):
    """Mean over all starts of all traces of the mean over their horizons."""
    means = []
    for losses in per_trace:
        for start in sorted({t for t, _ in losses}):
            values = [x for (t, _), x in losses.items() if t == start]
            means.append(sum(values) / len(values))
    return sum(means) / len(means)


def byol_surprise(losses, time):
    """Σ of all losses whose target is o_s, for every s of one trace."""
    return [sum(x for (t, i), x in losses.items() if t + i == s) for s in range(time)]


def normalised(batches, x, clip):
    """One pixel: clip((x − mean)/std) with mean and std over all numbers of all batches."""
    seen = [value for batch in batches for value in batch]
    mean = sum(seen) / len(seen)
    std = math.sqrt(sum((s - mean) ** 2 for s in seen) / len(seen))
    return max(-clip, min(clip, (x - mean) / (std if std > 1e-8 else 1.0)))
