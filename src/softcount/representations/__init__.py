"""Observations to features: what the bonuses see (§3.2 of the paper).

`make.make_representation` builds any of them by name; `trainer.RepresentationTrainer`
trains it. What each one is and when to use which: `docs/representations.md`.
"""
