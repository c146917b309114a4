"""MEME's loss and its gradient on network outputs, in plain Python floats.

Arrays are nested lists: outputs `[T+1][B][N][A]`, rows `[T+1][B]`. The gradient is written
down in closed form; what must carry no gradient (targets, masks, scales) has none here.
"""

import math

from oracles.returns import h, h_inverse, returns


def softmax(logits, temperature=1.0):
    top = max(logits)
    weights = [math.exp((x - top) / temperature) for x in logits]
    return [w / sum(weights) for w in weights]


def sign(x):
    return (x > 0) - (x < 0)


def meme_loss(online, target, rows, betas, gammas, moments, cfg):
    """Returns loss, priorities, sigmas, new moments and gradients of q_extrinsic, q_intrinsic, logits.

    `online` and `target` are (q_e, q_i, logits); `moments` is (means, squares, weight).
    """
    q_e, _q_i, logits = online
    T, B, N, A = len(q_e) - 1, len(q_e[0]), len(betas), len(q_e[0][0][0])
    eps = cfg["rescale_epsilon"]

    def combined(outputs, t, b, j):
        return [e + betas[j] * i for e, i in zip(outputs[0][t][b][j], outputs[1][t][b][j], strict=True)]

    pairs = [
        (t, b) for t in range(T) for b in range(B) if not rows["last"][t][b] and not rows["first"][t + 1][b]
    ]
    y = {}
    for b in range(B):
        for j in range(N):
            trace = []
            for t in range(T + 1):
                q = combined(online, t, b, j)
                trace.append(
                    {
                        "q": q,
                        "values": [h_inverse(x, eps) for x in q],
                        "policy": softmax(logits[t][b][j], cfg["policy_temperature"]),
                        "action": rows["action"][t][b],
                        "mu": None,
                        "reward": rows["reward"][t][b] + betas[j] * rows["intrinsic"][t][b],
                        "first": rows["first"][t][b],
                        "last": rows["last"][t][b],
                        "terminal": rows["terminal"][t][b],
                    }
                )
            found = returns(trace, gammas[j], cfg["trace_discount"], cfg["soft_tolerance"], "soft")
            for t in range(T):
                if found[t] is not None:
                    y[t, b, j] = h(found[t], eps)

    def taken(outputs, t, b, j):
        return combined(outputs, t, b, j)[rows["action"][t][b]]

    error = {key: taken(online, *key) - y[key] for key in y}
    sigmas, new_means, new_squares = [], [], []
    means, squares, weight = moments
    for j in range(N):
        mine = [error[t, b, j] for t, b in pairs]
        mean, square = sum(mine) / len(mine), sum(x * x for x in mine) / len(mine)
        batch = math.sqrt(max(square - mean**2, 0.0))
        running = 0.0
        if weight > 0:
            running = math.sqrt(max(squares[j] / weight - (means[j] / weight) ** 2, 0.0))
        sigmas.append(max(running, batch, cfg["sigma_floor"]))
        new_means.append((1 - cfg["sigma_step"]) * means[j] + cfg["sigma_step"] * mean)
        new_squares.append((1 - cfg["sigma_step"]) * squares[j] + cfg["sigma_step"] * square)
    new_weight = (1 - cfg["sigma_step"]) * weight + cfg["sigma_step"]

    grad_q = [[[[0.0] * A for _ in range(N)] for _ in range(B)] for _ in range(T + 1)]
    grad_i = [[[[0.0] * A for _ in range(N)] for _ in range(B)] for _ in range(T + 1)]
    grad_l = [[[[0.0] * A for _ in range(N)] for _ in range(B)] for _ in range(T + 1)]
    loss, masked_td, masked_kl = 0.0, 0, 0
    for t, b in pairs:
        for j in range(N):
            acted = 1.0 if rows["mixture"][t][b] == j else 0.0
            share = cfg["behaviour_weight"] * acted + (1 - cfg["behaviour_weight"]) / N
            scale = share * rows["weights"][b] / len(pairs)
            q, q_target = taken(online, t, b, j), taken(target, t, b, j)
            is_out = abs(q - q_target) > cfg["trust_region"] * sigmas[j]
            is_masked = is_out and sign(q - q_target) != sign(q - y[t, b, j])
            masked_td += is_masked
            if not is_masked:
                delta = error[t, b, j] / sigmas[j]
                loss += scale * 0.5 * delta**2
                grad_q[t][b][j][rows["action"][t][b]] += scale * delta / sigmas[j]
                grad_i[t][b][j][rows["action"][t][b]] += betas[j] * scale * delta / sigmas[j]
            policy, policy_target = softmax(logits[t][b][j]), softmax(target[2][t][b][j])
            kl = sum(p * math.log(p / q_) for p, q_ in zip(policy_target, policy, strict=True))
            if kl > cfg["kl_limit"]:
                masked_kl += 1
                continue
            values = combined(online, t, b, j)
            greedy = values.index(max(values))
            wanted = [cfg["distillation_epsilon"] / A] * A
            wanted[greedy] += 1 - cfg["distillation_epsilon"]
            loss -= scale * sum(w * math.log(p) for w, p in zip(wanted, policy, strict=True))
            for a in range(A):
                grad_l[t][b][j][a] += scale * (policy[a] - wanted[a])
    priorities = []
    for b in range(B):
        mine = []
        for t, c in pairs:
            if c == b:
                sizes = [abs(error[t, b, j] / sigmas[j]) for j in range(N)]
                size = sizes[rows["mixture"][t][b]]
                if cfg["priority_of"] == "all":
                    eta = cfg["behaviour_weight"]
                    size = eta * size + (1 - eta) * sum(sizes) / N
                mine.append(size)
        p = cfg["priority_max_weight"]
        priorities.append(p * max(mine) + (1 - p) * sum(mine) / len(mine))
    return {
        "loss": loss,
        "priorities": priorities,
        "sigmas": sigmas,
        "moments": (new_means, new_squares, new_weight),
        "gradients": (grad_q, grad_i, grad_l),
        "masked": (masked_td, masked_kl),
    }
