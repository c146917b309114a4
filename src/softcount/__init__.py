"""Soft visitation counts for deep exploration: RECODE and CASM, exact, fast and readable."""

from softcount.memory import Observed, RecodeConfig, RecodeMemory

__version__ = "0.1.0"
__all__ = ["Observed", "RecodeConfig", "RecodeMemory", "__version__"]
