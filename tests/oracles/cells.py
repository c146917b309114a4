"""AP by cells in NumPy float64, one cell and one number at a time; pictures are `[H, W, C]` in [0, 1].

Only the names of parameters are shared with the package, no code is.
"""

from __future__ import annotations

import math

import numpy as np
from oracles.representations import cross_entropy


def window(maps, row, column, kernel, stride):
    """What a kernel centred on a cell sees of `[H, W, C]`, zeros outside."""
    seen = np.zeros((kernel, kernel, maps.shape[2]))
    for i in range(kernel):
        for j in range(kernel):
            y, x = row * stride + i - kernel // 2, column * stride + j - kernel // 2
            if 0 <= y < maps.shape[0] and 0 <= x < maps.shape[1]:
                seen[i, j] = maps[y, x]
    return seen


def convolve(p, name, maps, cells, stride=1):
    weight, bias = p[f"{name}.weight"], p[f"{name}.bias"]  # [out, in, k, k]
    result = np.zeros((*cells, len(weight)))
    for row in range(cells[0]):
        for column in range(cells[1]):
            seen = window(maps, row, column, weight.shape[2], stride)
            for out in range(len(weight)):
                result[row, column, out] = bias[out] + (weight[out] * seen.transpose(2, 0, 1)).sum()
    return result


def net(p, name, picture, cells, stride):
    hidden = np.maximum(convolve(p, f"{name}.0", picture, cells, stride), 0)
    hidden = np.maximum(convolve(p, f"{name}.2", hidden, cells), 0)
    return convolve(p, f"{name}.4", hidden, cells)


def evidence(p, before, after, cells, kernel, stride):
    """`[rows, columns, A]`; nothing where the first kernel sees no change."""
    change = after - before
    said = net(p, "evidence", np.concatenate((before, 4 * change), -1), cells, stride)
    for row in range(cells[0]):
        for column in range(cells[1]):
            if not window(change, row, column, kernel, stride).any():
                said[row, column] = 0
    return said


def log_looks(p, picture, cells, stride):
    looks = net(p, "looking", picture, cells, stride).ravel()
    return looks - looks.max() - math.log(np.exp(looks - looks.max()).sum())


def loss(p, pictures, is_first, is_last, action, cells, kernel, stride, cost):
    """The three parts added: pictures[t][b], the rest likewise."""
    predictions, prices, weighed, weights = [], [], 0.0, 0.0
    for t in range(len(pictures) - 1):
        for b in range(len(pictures[0])):
            if is_last[t][b] or is_first[t + 1][b]:
                continue
            before, after = pictures[t][b], pictures[t + 1][b]
            said = evidence(p, before, after, cells, kernel, stride).reshape(-1, len(p["prior"]))
            predictions.append(cross_entropy((said.sum(0) + p["prior"]).tolist(), action[t][b]))
            energy = (said**2).sum(1) + 1e-8
            prices.append(np.sqrt(energy).sum())
            both = (log_looks(p, before, cells, stride) + log_looks(p, after, cells, stride)) / 2
            weighed -= (energy * both).sum()
            weights += energy.sum()
    return np.mean(predictions) + cost * np.mean(prices) + weighed / weights
