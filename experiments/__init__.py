"""Runs, figures and pictures of the docs. They use the package; nothing of the package uses them.

    python -m experiments list
    python -m experiments NAME

They are not installed: they read and write `results/` and `docs/` of a checkout.
"""
