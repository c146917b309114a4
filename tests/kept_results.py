"""Configurations of committed results, read as today's."""

import json
import warnings

from softcount.config import RunConfig, only_read, with_fields
from softcount.config_json import from_json


def read_kept(content: dict) -> RunConfig:
    """A configuration as a result holds it; fields that are newer have their defaults."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the configuration is of an older version")
        return from_json(json.dumps(content))


def resolved(config: RunConfig) -> RunConfig:
    """The same configuration with the memory's time step written out, and only what is read of it."""
    per_step = config.recode.memory.embeddings_per_step or config.num_envs
    return only_read(with_fields(config, {"recode.memory.embeddings_per_step": per_step}))
