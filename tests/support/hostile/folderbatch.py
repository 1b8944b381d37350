"""Many hostile folders and every operation, in a process of their own with limits.

`python -m support.hostile.folderbatch WORK SEED COUNT ADDRESS` prints a line for each operation
that an enemy's folder broke, and at the end how many were tried.
"""

import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from support.hostile.foldermutations import Mutation, Outside, mutations
from support.hostile.folderoperations import (
    CHANGING,
    LOOKING,
    Broken,
    Operation,
    Place,
    declarations,
    enter,
    good_folder,
)
from support.runner.proofscope import IS_WHOLE

MEMORY = 2**30
"""Bytes that all operations together may take beyond what the process had before: half of what the
largest legal documents need."""
LOOKED_AT = len(LOOKING) if IS_WHOLE else 3
"""Operations that change nothing, of those at each folder; all have their turn."""
SECONDS = 30
"""For one operation, on a busy machine; a pipe or /dev/zero would take for ever."""


def main() -> None:
    """Run the batch that the command line names."""
    work, seed, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    good = work / "good"
    if not good.exists():
        good_folder(good)
    outside = Outside(work / "canaries", sys.argv[4])
    place = Place(work / "out", declarations(work, work / "out"))
    sys.path.insert(0, str(outside.canaries))
    sys.dont_write_bytecode = True
    signal.signal(signal.SIGALRM, _too_long)
    _warm_up(good, place)
    _limit_memory()
    started, broken = time.monotonic(), 0
    for number, mutation in enumerate(islice(mutations(good, outside, seed), count)):
        broken += _try_all(good, place, mutation, number)
    print(f"{count} folders, {broken} broken, {time.monotonic() - started:.1f} s", flush=True)
    sys.exit(bool(broken))


def _try_all(good: Path, place: Place, mutation: Mutation, number: int) -> int:
    _fresh(good, place.folder)
    mutation.apply(place.folder)
    broken = 0
    for name, operation in (*_turned(LOOKING, number)[:LOOKED_AT], *_turned(CHANGING, number)):
        signal.alarm(SECONDS)
        try:
            enter(operation, place)
        except Broken as error:
            broken += _report(mutation, name, str(error))
        except Exception:  # noqa: BLE001  (any is a fault that is printed)
            broken += _report(mutation, name, traceback.format_exc())
        finally:
            signal.alarm(0)
    return broken


def _turned(operations: Mapping[str, Operation], number: int) -> list[tuple[str, Operation]]:
    listed = list(operations.items())
    first = number % len(listed)
    return listed[first:] + listed[:first]


def _fresh(good: Path, folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(good, folder)


def _report(mutation: Mutation, operation: str, fault: str) -> int:
    print(f"BROKEN {operation} at {mutation.name!a}: {fault!a}", flush=True)
    return 1


def _warm_up(good: Path, place: Place) -> None:
    """Load all that the operations import, so that it does not count as theirs."""
    _fresh(good, place.folder)
    for operation in (*LOOKING.values(), *CHANGING.values()):
        enter(operation, place)


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _too_long(_signal: int, _frame: object) -> None:
    raise Broken(f"it took more than {SECONDS} s")


if __name__ == "__main__":
    main()
