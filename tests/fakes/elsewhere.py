"""A device that is not there: tensors that say they lie on it, and refuse to meet those of the CPU.

A tensor on `DEVICE` holds an ordinary one and computes with it, so the numbers are the CPU's own. What an
accelerator would refuse is refused: one operation on tensors of both devices (but for numbers, which are
allowed), and `.numpy()` without `.cpu()`. Unlike an accelerator, indices must lie where the indexed
tensor does. Random numbers are drawn on the CPU only, as everywhere in this project. Works in one thread.
"""

from contextlib import contextmanager
from functools import cache
from unittest import mock

import torch
from torch.optim import optimizer
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = "lazy"
"""A type of device that torch knows by name and, without its own library, cannot compute on."""
BETWEEN_DEVICES = {torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default}


class WrongDevice(RuntimeError):
    """What an accelerator says when tensors of two devices meet."""


class Elsewhere(torch.Tensor):
    """A tensor on the device that is not there."""

    @staticmethod
    def __new__(cls, held):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=DEVICE,
            requires_grad=held.requires_grad,
        )

    def __init__(self, held):
        self.held = held.detach()

    def __repr__(self):
        return f"Elsewhere({self.held})"

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), options=None):
        return compute(function, arguments, options or {})


@contextmanager
def device_elsewhere():
    """While it is open, `DEVICE` can be computed on, also by optimisers that are one operation."""
    known = optimizer._get_fused_kernels_supported_devices()
    with (
        mock.patch.object(optimizer, "_get_fused_kernels_supported_devices", return_value=[*known, DEVICE]),
        Computing(),
    ):
        yield


class Computing(TorchDispatchMode):
    """Sees the operations that have no tensor of ours among their arguments, such as what makes one."""

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        return compute(function, arguments, options or {})


@cache
def consists_of_others(function):
    return torch._C._dispatch_has_kernel_for_dispatch_key(function.name(), "CompositeImplicitAutograd")


def is_elsewhere(device):
    return device is not None and torch.device(device).type == DEVICE


def compute(function, arguments, options):
    """Runs an operation on what the tensors hold, and puts the result where it belongs."""
    if consists_of_others(function):  # as `to` does; seen only where no gradients are kept
        with Computing():
            return function.decompose(*arguments, **options)
    tensors = [x for x in tree_flatten((arguments, options))[0] if isinstance(x, torch.Tensor)]
    there = [x for x in tensors if isinstance(x, Elsewhere)]
    here = [x for x in tensors if not isinstance(x, Elsewhere) and x.dim() > 0]
    if there and here and function not in BETWEEN_DEVICES:
        shapes = ", ".join(str(tuple(x.shape)) for x in here)
        raise WrongDevice(f"{function} met tensors of {DEVICE} and, of shape {shapes}, of the cpu")
    goes_there = is_elsewhere(options["device"]) if options.get("device") is not None else bool(there)
    if function is torch.ops.aten.copy_.default:
        goes_there = isinstance(arguments[0], Elsewhere)
    if options.get("device") is not None:
        options = {**options, "device": torch.device("cpu")}
    result = function(*tree_map(_held, arguments), **tree_map(_held, options))
    written = function._schema.is_mutable and tensors
    if written:  # in place: the tensor that was given is the result
        originals = {id(_held(x)): x for x in there}
        return tree_map(lambda x: originals.get(id(x), _put(x, goes_there)), result)
    return tree_map(lambda x: _put(x, goes_there), result)


def _held(x):
    return x.held if isinstance(x, Elsewhere) else x


def _put(x, goes_there):
    return Elsewhere(x) if goes_there and isinstance(x, torch.Tensor) and not isinstance(x, Elsewhere) else x
