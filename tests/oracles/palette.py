"""A dense layer over looked-up colours and its gradients, cell by cell in plain floats."""


def forward(index, table, weight, bias):
    """Returns y[n][u] = b[u] + Σ_cell Σ_k W[u][cell·K + k] table[index[n][cell]][k]."""
    num_channels = len(table[0])
    out = []
    for row in index:
        sums = []
        for unit, weights in enumerate(weight):
            total = bias[unit]
            for cell, colour in enumerate(row):
                for k in range(num_channels):
                    total += weights[cell * num_channels + k] * table[colour][k]
            sums.append(total)
        out.append(sums)
    return out


def backward(index, table, weight, grad):
    """Returns the gradients of Σ_nu grad[n][u] y[n][u] by table, weight and bias."""
    num_channels = len(table[0])
    by_table = [[0.0] * num_channels for _ in table]
    by_weight = [[0.0] * len(weights) for weights in weight]
    by_bias = [0.0] * len(weight)
    for row, grads in zip(index, grad, strict=True):
        for unit, g in enumerate(grads):
            by_bias[unit] += g
            for cell, colour in enumerate(row):
                for k in range(num_channels):
                    place = cell * num_channels + k
                    by_table[colour][k] += g * weight[unit][place]
                    by_weight[unit][place] += g * table[colour][k]
    return by_table, by_weight, by_bias
