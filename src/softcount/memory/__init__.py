"""Memories that turn embeddings into visitation counts."""

from softcount.memory.config import RecodeConfig
from softcount.memory.episodic import EpisodicConfig, EpisodicMemory
from softcount.memory.memory import RecodeMemory
from softcount.memory.recode import Observed

__all__ = ["EpisodicConfig", "EpisodicMemory", "Observed", "RecodeConfig", "RecodeMemory"]
