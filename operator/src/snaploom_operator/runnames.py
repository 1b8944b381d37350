"""Deterministic names of runs.

A name is derived from the trigger of a run, never from the time, so that after a crash between
recording and using a name the next process computes the same one (rule R3). The same trigger can
occur twice: a declaration is changed and changed back. So the previous run is part of the name, and
a name that an object in the cluster already has is never reused.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Container

from snaploom.models.run import RunAction, Trigger

LONGEST_RUN = 50
"""Characters: Spark derives names of pods and Services from it, which may have 63."""
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

    The UID is part of it, since names come again after a deletion and UIDs do not, and so is the
    name of the run before; names that are taken are left out.
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
