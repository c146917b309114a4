"""Environments: how they look, and what solvers and random actions reach in them."""
