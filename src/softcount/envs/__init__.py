"""Worlds, each with many copies stepped at once.

`make.py` builds any of them by name and `families.py` lists the names. `vector.py` has the class that
turns single Gymnasium environments into a vector of them; `disco_maze.py` is one written as a vector.
"""
