"""Names of runs: the same for the same run, whoever computes them, and different for every other.

A name follows from what the run is for, never from the time, so that a process that dies between
writing it down and using it is continued by the next one (`operator.md` section 11). What a run is
for can come again: a declaration is changed and changed back. So the run before it goes into the
name too, and a name that something in the cluster already has is never given again.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Container

from snaploom.models.run import RunAction, Trigger

LONGEST_RUN = 50
"""Characters: names of pods and Services of Spark are made of it, and may have 63."""
PREFIXES = {"OutputDataset": "ods", "SkippingIndex": "skix"}
_HASH = 8
_NOT_ALLOWED = re.compile(r"[^a-z0-9]+")


def run_name(
    kind: str,
    name: str,
    uid: str,
    trigger: Trigger,
    attempt: int,
    action: RunAction,
    before: str = "",
    taken: Container[str] = (),
) -> str:
    """Name of a run and its application: a DNS label (RFC 1035) of at most 50 characters.

    Args:
        kind: kind of the resource.
        name: its name.
        uid: its UID; names come again after a deletion, UIDs do not.
        trigger: what the run is for.
        attempt: which attempt it is (ruling D17).
        action: what it does.
        before: name of the run that ended last.
        taken: names that are not free.
    """
    prefix = PREFIXES[kind]
    kept = LONGEST_RUN - len(prefix) - _HASH - 2
    middle = _NOT_ALLOWED.sub("-", name.lower()).strip("-")[:kept].strip("-")
    salt = 0
    while True:
        identity = [uid, trigger.dump_json(), attempt, action, before, salt]
        digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:_HASH]
        found = "-".join(part for part in (prefix, middle, digest) if part)
        if found not in taken:
            return found
        salt += 1
