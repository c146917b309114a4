"""The roles as processes on Ray: one machine or many, one memory that all actors share.

`journal.py`, `once.py` and `client.py` know nothing of Ray: they see to it that every batch of an actor
is counted exactly once, whatever dies in between. `cluster.py` and `memory_host.py` bring them onto Ray.
"""
