"""Between torch and NumPy: trees of arrays to tensors and back, in one place.

Roles exchange NumPy arrays and `softcount.store` writes them; only what computes holds
tensors. Arrays and CPU tensors share memory here, so a conversion costs no copy unless
`copy=True` asks for one, which everything that outlives the next update must do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from softcount.types import State, map_arrays


def to_tensors(tree: Any, device: torch.device | str = "cpu") -> Any:
    """Turns the arrays of a tree into tensors that share their memory (on the CPU).

    >>> to_tensors({"a": np.arange(2)})
    {'a': tensor([0, 1])}
    """

    def convert(leaf: Any) -> Tensor:
        if isinstance(leaf, Tensor):
            return leaf.to(device)
        array = np.asarray(leaf)
        if not array.flags.writeable:
            array = array.copy()
        return torch.from_numpy(array).to(device)

    return map_arrays(convert, tree)


def to_arrays(tree: Any, *, copy: bool = False) -> Any:
    """Turns the tensors of a tree into arrays; without `copy` they share memory (on the CPU)."""

    def convert(leaf: Any) -> Any:
        array = leaf.detach().cpu().numpy() if isinstance(leaf, Tensor) else np.asarray(leaf)
        return array.copy() if copy else array

    return map_arrays(convert, tree)


def module_state(module: nn.Module, *, copy: bool = False) -> State:
    """Returns all parameters and buffers of a module as arrays, by name."""
    state: State = to_arrays(dict(module.state_dict()), copy=copy)
    return state


def load_module(module: nn.Module, state: Mapping[str, Any]) -> None:
    """Copies arrays into the parameters and buffers of a module; names and shapes must agree.

    What `load_state_dict` does, without its hooks, several times faster: actors do it after every update.
    """
    new: dict[str, Tensor] = to_tensors(dict(state))
    own = module.state_dict()
    if own.keys() != new.keys() or any(own[name].shape != new[name].shape for name in own):
        module.load_state_dict(new)  # says what does not fit
        return
    for name, tensor in own.items():  # they share their memory with the module
        tensor.copy_(new[name])


def optimiser_state(optimiser: torch.optim.Optimizer) -> State:
    """Returns the moments and step counts of an optimiser as arrays, by parameter number."""
    moments = optimiser.state_dict()["state"]
    return {str(number): to_arrays(dict(entry), copy=True) for number, entry in moments.items()}


def load_optimiser(optimiser: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Restores moments and step counts; settings such as the learning rate stay as configured."""
    complete = optimiser.state_dict()
    complete["state"] = {
        int(number): {name: torch.as_tensor(np.array(array)) for name, array in entry.items()}
        for number, entry in state.items()
    }
    optimiser.load_state_dict(complete)
