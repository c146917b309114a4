"""What learns to act from the two rewards.

`protocols.py` says what an agent is to the rest of the package: start there. Each agent has a folder
of its own. The other files here are parts that any of them may use.
"""
