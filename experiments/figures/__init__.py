"""The paper's figures, ablations and what it lacks: one module each, settings + measure + plot.

`registry.py` finds them all; `softcount figure list` shows them, `softcount figure NAME` runs
what is missing and draws. A figure is a list of jobs; each job leaves one JSON file.
"""
