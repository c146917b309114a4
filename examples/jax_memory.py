"""RECODE's memory beside JAX: arrays go in and come out, also from inside a jitted function.

    python examples/jax_memory.py

The memory is state on the host, changed in order, so a jitted function reaches it by
`io_callback(ordered=True)`. Outside of jit no callback is needed: `memory.observe` takes a
`jax.Array` as it is. Without JAX installed the same steps run on NumPy arrays.
"""

from __future__ import annotations

import numpy as np

from softcount import RecodeConfig, RecodeMemory

BATCH, DIM, STEPS = 64, 8, 50


def run_numpy(memory: RecodeMemory) -> list[float]:
    """Random embeddings around a slowly moving point, on NumPy."""
    rng = np.random.default_rng(0)
    means = []
    for t in range(STEPS):
        embeddings = rng.normal(size=(BATCH, DIM)).astype(np.float32) + np.float32(0.02 * t)
        means.append(float(memory.observe(embeddings).mean()))
    return means


def run_jax(memory: RecodeMemory) -> list[float]:
    """The same on JAX, the memory called from inside `jit`."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import io_callback

    shape = jax.ShapeDtypeStruct((BATCH,), jnp.float32)

    def observe(embeddings):
        return memory.observe(embeddings).astype(np.float32)  # a NumPy array, which JAX takes back

    @jax.jit
    def step(key, t):
        embeddings = jax.random.normal(key, (BATCH, DIM)) + 0.02 * t
        rewards = io_callback(observe, shape, embeddings, ordered=True)
        return rewards.mean()

    keys = jax.random.split(jax.random.key(0), STEPS)
    means = [float(step(key, t)) for t, key in enumerate(keys)]
    outside = memory.score(jnp.zeros((2, DIM)))  # no callback needed outside of jit
    assert outside.shape == (2,)
    return means


def main() -> list[float]:
    memory = RecodeMemory(RecodeConfig(size=500, dim=DIM, neighbours=5), seed=0)
    try:
        means = run_jax(memory)
    except ImportError:
        print("JAX is not installed; the same on NumPy:")
        means = run_numpy(memory)
    print(f"mean reward of the first step {means[0]:.2f}, of the last {means[-1]:.2f}; {len(memory)} atoms")
    return means


if __name__ == "__main__":
    main()
