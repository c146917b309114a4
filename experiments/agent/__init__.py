"""Agents that are trained: what a bonus, a part of it or a part of the agent does to exploration."""
