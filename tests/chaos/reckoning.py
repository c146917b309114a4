"""The reckoning after a storm: was every batch counted exactly once, and paid what it should be?

Two ways. The journal is replayed by the program itself. And, without journal or de-duplication, a plain
memory server in this process is shown what the clients say they sent, in the order of their answers.
"""

import hashlib

import numpy as np

from chaos.senders import content, read_log
from softcount.launch.ray import once
from softcount.types import leaves_of


def digest(state):
    """One number for all bits of a state."""
    found = hashlib.sha256()
    for leaf in leaves_of(state):
        array = np.asarray(leaf)
        found.update(f"{array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def reckon(folder, logs, actors, rows, plan, live):
    """Compares clients, journal and the live memory's state; returns plain numbers."""
    entries = [entry for actor in actors for entry in read_log(logs, actor)]
    by_stamp = {(e.actor, e.incarnation, e.sequence): e for e in entries}
    replayed, records, wrongly_paid = plan.build(), [], 0
    for record, answer in once.replay(folder, replayed):
        request = record.request
        records.append((request.actor, request.incarnation, request.sequence))
        known = by_stamp.get(records[-1])
        if known is not None and known.paid is not None:
            wrongly_paid += not np.array_equal(known.paid, answer.value) or known.position != record.position
    counted = set(records)
    answered = [stamp for stamp, entry in by_stamp.items() if entry.paid is not None]
    alone = plan.build()
    for stamp in records:
        paid = alone(*content(*stamp, rows))
        known = by_stamp[stamp]
        wrongly_paid += known.paid is not None and not np.array_equal(known.paid, paid)
    return {
        "embeddings_sent": len(by_stamp) * rows,
        "embeddings_answered": len(answered) * rows,
        "embeddings_counted": len(records) * rows,
        "lost": sum(stamp not in counted for stamp in answered) * rows,
        "doubled": (len(records) - len(counted)) * rows,
        "never_sent": sum(stamp not in by_stamp for stamp in counted) * rows,
        "sent_by_clients_killed_before_the_answer": (len(by_stamp) - len(answered)) * rows,
        "of_these_counted": sum(stamp in counted and by_stamp[stamp].paid is None for stamp in by_stamp)
        * rows,
        "batches_paid_wrongly": int(wrongly_paid),
        "state_is_the_replayed_journal": digest(replayed.state_dict()) == digest(live),
        "state_is_a_plain_memory_shown_the_same": digest(alone.state_dict()) == digest(live),
    }


def faults_of(found):
    """What is wrong with a reckoning; nothing, if all is well."""
    wrong = [
        name for name in ("lost", "doubled", "never_sent", "batches_paid_wrongly") if found.get(name, 0) != 0
    ]
    return wrong + [name for name in found if name.startswith("state_is") and found[name] is not True]
