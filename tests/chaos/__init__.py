"""Processes killed, stopped and starved while a run goes on; and whether anything was lost or doubled.

make chaos        # = PYTHONPATH=tests python -m chaos
"""
