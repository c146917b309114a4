"""The boxes of the paper's architecture figure, one class each.

A step goes through `actor.py`, `inference.py`, `memory_server.py`, `replay_server.py` and `learner.py`;
`evaluator.py` plays beside them. They exchange arrays and plain records, and know no agent by name.
"""
