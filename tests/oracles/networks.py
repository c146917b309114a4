"""Whole networks in NumPy float64, one trace at a time, straight from their equations.

`p` are parameters by name, as `state_dict` gives them; `part(p, "a")` are those of the module `a`.
Only these names are shared with the package, no code is.
"""

from __future__ import annotations

import numpy as np
from oracles.representations import casm_tokens, sinusoid


def numbers(state):
    """Parameters as float64 arrays by name, whatever library they come from."""
    return {name: np.asarray(x, np.float64) for name, x in state.items()}


def part(p, name):
    return {key.removeprefix(f"{name}."): x for key, x in p.items() if key.startswith(f"{name}.")}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def relu(x):
    return np.maximum(x, 0)


def linear(p, x):
    return x @ p["weight"].T + p.get("bias", 0.0)


def layer_norm(x, weight=1.0, bias=0.0):
    spread = np.sqrt(((x - x.mean()) ** 2).mean() + 1e-5)
    return (x - x.mean()) / spread * weight + bias


def layers(p):
    """The linear layers of a sequence, in order."""
    return [part(p, str(n)) for n in sorted({int(name.split(".")[0]) for name in p})]


def mlp(p, x):
    """Linear layers with a ReLU between any two."""
    *hidden, last = layers(p)
    for layer in hidden:
        x = relu(linear(layer, x))
    return linear(last, x)


def embed(p, observation, scale=1.0, has_norm=False):
    """f(o) of one observation by dense layers, a ReLU after each, a linear end, a bare LayerNorm."""
    x = scale * np.asarray(observation, np.float64).ravel()
    for layer in layers(part(p, "torso.dense")):
        x = relu(linear(layer, x))
    x = linear(part(p, "linear"), x)
    return layer_norm(x) if has_norm else x


# The gated transformer


def gate(p, x, y):
    """(1 − z) x + z h, six matrices: W_r, W_z, W_g on the new, U_r, U_z on the old, U_g on the reset."""
    w_r, w_z, w_g = np.split(p["from_new.weight"], 3)
    u_r, u_z = np.split(p["from_old.weight"], 2)
    r = sigmoid(w_r @ y + u_r @ x)
    z = sigmoid(w_z @ y + u_z @ x - p["bias"])
    h = np.tanh(w_g @ y + p["from_reset.weight"] @ (r * x))
    return (1 - z) * x + z * h


def attend(p, i, context, is_seen, u, v):
    """What row i of the context takes from the rows it sees; all heads, side by side."""
    num_heads, size = u.shape
    width = num_heads * size
    w_k, w_v = np.split(p["keys_values.weight"], 2)
    q = p["queries.weight"] @ context[i]
    outputs = []
    for head in range(num_heads):
        own = slice(head * size, (head + 1) * size)
        scores = []
        for j in is_seen:
            by_content = (q[own] + u[head]) @ (w_k @ context[j])[own]
            code = p["positions.weight"] @ np.array(sinusoid(i - j, width))
            scores.append((by_content + (q[own] + v[head]) @ code[own]) / np.sqrt(size))
        weights = np.exp(np.array(scores) - max(scores))
        values = np.array([(w_v @ context[j])[own] for j in is_seen])
        outputs.append(weights @ values / weights.sum())
    return p["out.weight"] @ np.concatenate(outputs)


def gated_layer(p, x, is_first, u, v, past=()):
    """One layer over the rows x; `past` are earlier rows of the episode that row 0 may continue."""
    rows, num_past = [*past, *x], len(past)
    norm_one, norm_two = part(p, "norm_one"), part(p, "norm_two")
    context = [layer_norm(row, **norm_one) for row in rows]
    result = []
    for t in range(len(x)):
        start = max((s for s in range(t + 1) if is_first[s]), default=-num_past)
        is_seen = range(num_past + start, num_past + t + 1)
        y = attend(part(p, "attention"), num_past + t, context, is_seen, u, v)
        between = gate(part(p, "gate_one"), x[t], relu(y))
        y = mlp(part(p, "positionwise"), layer_norm(between, **norm_two))
        result.append(gate(part(p, "gate_two"), between, relu(y)))
    return np.array(result)


def gated_transformer(p, x, is_first, memory=None):
    """All layers; returns the outputs and the inputs of each layer."""
    inputs = []
    while part(p, f"layers.{len(inputs)}"):
        number = len(inputs)
        inputs.append(x)
        past = () if memory is None else memory[number]
        x = gated_layer(part(p, f"layers.{number}"), x, is_first, p["content_bias"], p["position_bias"], past)
    return x, inputs


# Representations


def casm_guesses(p, observation, prev_action, is_first, hides_state):
    """f(o_t) and z_t of one trace under one mask; None hides nothing."""
    embedding = [embed(part(p, "embedder"), o) for o in observation]
    actions = [p["action_embedding.weight"][:, a] for a in prev_action]
    hidden = [p[name].tolist() for name in ("no_state", "no_action", "no_action_yet")]
    if hides_state is None:
        shown = [hidden[2] if t == 0 or is_first[t] else a.tolist() for t, a in enumerate(actions)]
        pairs = [e.tolist() + a for e, a in zip(embedding, shown, strict=True)]
    else:
        pairs = casm_tokens(
            [e.tolist() for e in embedding], [a.tolist() for a in actions], is_first, hides_state, *hidden
        )
    tokens = linear(part(p, "token"), np.array(pairs))
    outputs, _ = gated_transformer(part(p, "transformer"), tokens, is_first)
    return np.array(embedding), linear(part(p, "guess"), outputs)


def gru(p, x, state):
    """torch's GRU cell."""
    i_r, i_z, i_n = np.split(p["weight_ih"] @ x + p["bias_ih"], 3)
    h_r, h_z, h_n = np.split(p["weight_hh"] @ state + p["bias_hh"], 3)
    r, z = sigmoid(i_r + h_r), sigmoid(i_z + h_z)
    return (1 - z) * np.tanh(i_n + r * h_n) + z * state


def byol_predictions(p, observation, action, prev_action, is_first, num_actions, **options):
    """`predict(t, i)` and the targets of one trace, both not yet of length 1."""
    one_hot = np.eye(num_actions)
    state = np.zeros(p["closed.weight_hh"].shape[1])
    beliefs = []
    for t, o in enumerate(observation):
        incoming = one_hot[prev_action[t]]
        if is_first[t]:
            state, incoming = np.zeros_like(state), np.zeros(num_actions)
        omega = embed(part(p, "embedder"), o, **options)
        state = gru(part(p, "closed"), np.concatenate((omega, incoming)), state)
        beliefs.append(state)

    def predict(t, i):
        belief = beliefs[t]
        for s in range(t, t + i):
            belief = gru(part(p, "open"), one_hot[action[s]], belief)
        return mlp(part(p, "predictor"), belief).tolist()

    return predict, [embed(part(p, "target"), o, **options).tolist() for o in observation]


# The agent


def squash(x, epsilon=1e-3):
    return np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1) + epsilon * x


def meme_step(p, observation, prev_action, reward, prev_intrinsic, is_first, state, scale=1.0):
    """Q^e, Q^i and logits, each `[N][A]`, of one step of one environment, and the state after it."""
    x = scale * np.asarray(observation, np.float64).ravel()
    for layer in layers(part(p, "torso.dense")):
        x = relu(linear(layer, x))
    num_mixtures = len(p["value_out.0.bias"])
    num_actions = len(p["policy_out.bias"]) // num_mixtures
    hidden, cell = (np.asarray(s, np.float64) for s in state)
    before = np.zeros(num_actions + 2)
    if is_first:
        hidden, cell = np.zeros_like(hidden), np.zeros_like(cell)
    else:
        before[prev_action] = 1.0
        before[-2:] = squash(float(reward)), squash(float(prev_intrinsic))
    gates = p["core.input_weight"] @ np.concatenate((x, before)) + p["core.hidden_weight"] @ hidden
    o, i, f, n = np.split(gates + p["core.bias"], 4)
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(n)
    hidden = sigmoid(o) * np.tanh(cell)
    streams = np.split(relu(linear(part(p, "value_hidden"), hidden)), 4)
    values = []
    for k in range(2):
        value = linear(part(p, f"value_out.{k}"), streams[2 * k])
        advantage = linear(part(p, f"advantage_out.{k}"), streams[2 * k + 1])
        advantage = advantage.reshape(num_mixtures, num_actions)
        values.append(value[:, None] + advantage - advantage.mean(1, keepdims=True))
    logits = linear(part(p, "policy_out"), relu(linear(part(p, "policy_hidden"), hidden)))
    return (*values, logits.reshape(num_mixtures, num_actions)), (hidden, cell)


def meme_unroll(p, steps, state, **options):
    """(Q^e, Q^i, logits), each nested lists `[T][B][N][A]`, over a batch of traces."""
    time, batch = np.shape(steps.reward)
    outputs = [[[None] * batch for _ in range(time)] for _ in range(3)]
    for b in range(batch):
        now = tuple(np.asarray(x)[b] for x in state)
        for t in range(time):
            found, now = meme_step(
                p,
                steps.observation[t][b],
                int(steps.prev_action[t][b]),
                steps.reward[t][b],
                steps.extras["prev_intrinsic"][t][b],
                bool(steps.is_first[t][b]),
                now,
                **options,
            )
            for output, x in zip(outputs, found, strict=True):
                output[t][b] = x.tolist()
    return outputs


def adamw(values, gradients, *, rate, decay, betas, epsilon):
    """A parameter after one AdamW step per gradient."""
    values = np.array(values, np.float64)
    first, second = np.zeros_like(values), np.zeros_like(values)
    for n, g in enumerate(gradients, start=1):
        first = betas[0] * first + (1 - betas[0]) * g
        second = betas[1] * second + (1 - betas[1]) * g * g
        values = values - rate * decay * values
        corrected = second / (1 - betas[1] ** n)
        values = values - rate * first / (1 - betas[0] ** n) / (np.sqrt(corrected) + epsilon)
    return values


def distillation_error(p, x):
    """RND: the mean squared difference between predictor and random target at one input."""

    def answer(name):
        y, net = x, part(p, name)
        for layer in layers(part(net, "0.dense")):
            y = relu(linear(layer, y))
        return mlp({key: value for key, value in net.items() if not key.startswith("0.")}, y)

    return float(((answer("predictor") - answer("target")) ** 2).mean())
