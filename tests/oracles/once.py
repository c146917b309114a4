"""Exactly once, in plain Python: what a memory that never dies would answer, and what it has counted.

It keeps every answer it ever gave, so there is nothing to recover and nothing to forget.
"""


class ExactlyOnce:
    """Answers `(verdict, place in the order)`; `counted` is the order of all."""

    def __init__(self):
        self.counted = []  # (actor, life, number, content)
        self.answers = {}  # actor -> {life: [(content, place), ...]}

    def send(self, actor, life, number, content):
        lives = self.answers.setdefault(actor, {})
        if lives and life < max(lives):
            return "older", -1
        given = lives.get(life, [])
        if number == len(given):
            self.counted.append((actor, life, number, content))
            lives[life] = [*given, (content, len(self.counted) - 1)]
            return "done", len(self.counted) - 1
        if number > len(given):
            return "gap", -1
        before, place = given[number]
        if number < len(given) - 1:
            return "answered", -1
        return ("done", place) if before == content else ("reused", -1)
