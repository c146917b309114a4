"""MEME, the paper's agent: a family of policies learned from one replay.

`agent.py` puts it together and makes updates, `loss.py` has the equations, `acting.py` plays.
Start with `loss.py` for what it learns and with `policies.py` for how its policies differ.
"""
