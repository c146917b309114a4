"""Soft visitation counts for deep exploration: RECODE and CASM, exact, fast and readable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softcount.memory import Observed, RecodeConfig, RecodeMemory

__version__ = "0.1.0"
__all__ = ["Observed", "RecodeConfig", "RecodeMemory", "__version__"]


def __getattr__(name: str) -> Any:
    """Loads the memory when it is asked for, so that `softcount --version` needs no arrays (Decision 401)."""
    if name not in __all__:
        raise AttributeError(f"module 'softcount' has no attribute {name!r}")
    import softcount.memory

    return getattr(softcount.memory, name)
