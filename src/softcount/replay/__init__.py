"""What lies between acting and learning. NumPy only.

`sequences.py` is the prioritised replay of traces: start there. `chunks.py` stores their rows,
`priorities.py` draws among them. `queue.py` is for agents that learn from each row once.
"""
