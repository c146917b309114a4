"""A memory server whose whole state is what it was shown, in order; and requests to it."""

import numpy as np

from softcount import store
from softcount.launch.ray.stamps import Request


class Shown:
    """Pays the number of batches so far, plus the content; refuses contents below 0."""

    def __init__(self):
        self.log = []

    def __call__(self, features, env_ids, is_first, is_terminal, task_ids=None, observation=None):
        content = int(env_ids[0])
        if content < 0:
            raise ValueError(f"{content} is no content")
        self.log.append(content)
        return np.float32([len(self.log) - 1, content])

    def metrics(self):
        return {"shown": float(len(self.log))}

    def begin_evaluation(self):
        pass

    def evaluate(self):
        return len(self.log)

    def state_dict(self):
        return {"log": np.array(self.log, np.int64)}

    def load_state_dict(self, state):
        self.log = [int(content) for content in state["log"]]


def request_of(actor, life, number, content, kind="observe"):
    rows = {"env_ids": np.array([content]), "is_first": np.zeros(1, bool), "is_terminal": np.zeros(1, bool)}
    arguments = {"embedding": None, "surprise": None, "place": None, "task_ids": None, "observation": None}
    return Request(actor, life, number, kind, store.pack({**rows, **arguments}))
