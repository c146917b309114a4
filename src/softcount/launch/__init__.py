"""Roles put together and stepped.

`build.py` makes all roles from a configuration; `local.py` steps them in one process. To see what a
training step does, start with `local.py`.
"""
