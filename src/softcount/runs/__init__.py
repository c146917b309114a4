"""The folder of a run: train, stop, resume, look into it.

`run.py` is the folder and what may happen to it, `playback.py` looks into one, and `metrics_log.py`
writes reports down.
"""
