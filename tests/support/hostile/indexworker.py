"""Runs every command about indexes over hostile folders: a process of its own, with little memory.

Reads folders from standard input, one a line, and answers with one line of JSON for each. What must
never happen is seen by an audit hook: connections, other programs, pickles.
"""

from __future__ import annotations

import io
import json
import os
import resource
import shutil
import signal
import stat
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from support.hostile.indexfolders import Place, a_target
from support.skipping.faketarget import URI

from snaploom.cli.console import OutputForm, show_failure
from snaploom.cli.index import create as interchange
from snaploom.cli.index import create as lifecycle
from snaploom.cli.index import describe, stats
from snaploom.cli.index.options import PlaceOptions
from snaploom.errors import SnaploomError
from snaploom.files.local import LocalObjectStore
from snaploom.plugins.xskipper.imports import import_index
from snaploom.plugins.xskipper.storefiles import XskipperDirectory
from snaploom.skipping.core.definition import column_term
from snaploom.skipping.core.filetable import Listing, match
from snaploom.skipping.core.predicates import Comparison, In, IsNull, Operator, Predicate
from snaploom.skipping.indexes.base import evaluate
from snaploom.skipping.lifecycle.operations import Timing, refresh
from snaploom.skipping.stores import catalog as bases
from snaploom.skipping.stores.catalog import FolderBase, IndexCatalog, Problem

MEMORY = 4 << 30
"""Bytes of address space beyond what the libraries take: twice what is read of one file at most,
and far less than what the bombs unpack to."""

SECONDS = 20
"""Longest time of one command, on a machine that does much else besides."""

FORBIDDEN = frozenset({
    "socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec",
    "os.posix_spawn", "os.fork", "pickle.find_class", "ctypes.dlopen",
})  # fmt: skip

A = column_term(("a",), "bigint")
CONDITIONS: tuple[Predicate, ...] = (
    Comparison(A, Operator.EQ, 25),
    Comparison(A, Operator.GT, 1000),
    In(A, (1, 2, 3), is_negated=False),
    IsNull(A),
)


LISTING = Listing.parse(
    ",".join(["110"] * 9), ",".join(["1000"] * 9), "\n".join(f"{URI}/f{n}" for n in range(9))
)


class TooSlow(BaseException):
    """A command took too long."""


def main() -> None:
    events: list[str] = []

    def audit(event: str, arguments: tuple[object, ...]) -> None:
        if event in FORBIDDEN:
            events.append(event)
        if event == "open" and "canaries" in str(arguments[0]):
            events.append(f"open {arguments[0]}")

    def end(*_: object) -> None:
        raise TooSlow

    signal.signal(signal.SIGALRM, end)
    _limit_memory()
    bases.entry_points = cache(entry_points)  # asked by each command, and slow
    sys.addaudithook(audit)
    for line in sys.stdin:
        folder = Path(line.strip())
        events.clear()
        outcomes = {}
        for name, act in ACTIONS.items():
            outcomes[name] = _outcome(act, folder)
        print(json.dumps({"outcomes": outcomes, "events": events}), flush=True)


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _outcome(act: Callable[[Path], str], folder: Path) -> dict[str, object]:
    began = time.monotonic()
    signal.alarm(SECONDS)
    try:
        ended = act(folder)
    except TooSlow:
        ended = "too slow"
    except SnaploomError as error:
        ended = f"error: {type(error).__name__}"
    except BaseException as error:  # noqa: BLE001 - what must not happen is reported
        place = traceback.extract_tb(error.__traceback__)[-1]
        ended = (
            f"CRASH {type(error).__name__}: {str(error)[:200]} at {place.filename}:{place.lineno}"
        )
    finally:
        signal.alarm(0)
    return {"ended": ended, "seconds": round(time.monotonic() - began, 2)}


def _command(act: Callable[[str, Path], int]) -> Callable[[Path], str]:
    """A command of the command line, from its function on."""

    def run(folder: Path) -> str:
        printed = io.StringIO()
        base = str(folder / "base")
        with redirect_stdout(printed), redirect_stderr(printed):
            try:
                code = act(base, folder)
            except SnaploomError as error:
                code = show_failure(error, ["index"])
        text = printed.getvalue()
        if "canary" in text:
            return "CRASH a canary was read"
        if "\x1b" in text or "\u202e" in text:
            return "CRASH a terminal is written to"
        return f"exit {code}"

    return run


def _at(base: str) -> PlaceOptions:
    return PlaceOptions(location=base)


def _query(folder: Path) -> str:
    """What a query does: find, pin, read, match and evaluate."""
    catalog = IndexCatalog([_base(folder)])
    found = catalog.find([f"{URI}/f1"])
    for pinned in found.indexes:
        files = catalog.files(pinned)
        if isinstance(files, Problem):
            return "unused"
        match(files, LISTING)
        for condition in CONDITIONS:
            evaluate(condition, pinned.definition, files)
    return "used" if found.indexes else "unused"


def _import(folder: Path) -> str:
    directory = XskipperDirectory(LocalObjectStore(Place(folder).metadata, create=False))
    base = FolderBase(LocalObjectStore(folder / "imported", create=True))
    try:
        for is_trusted in (True, False):
            store = base.index(f"{URI}{is_trusted}")
            import_index(store, a_target(), directory.read(), is_trusted=is_trusted)
    finally:
        shutil.rmtree(folder / "imported")
    return "done"


def _refresh(folder: Path) -> str:
    target = a_target()
    target.put("f8", 5, 6)
    refresh(_base(folder).index(URI), target, timing=Timing(abandoned_after_seconds=0))
    return "done"


def _base(folder: Path) -> FolderBase:
    return FolderBase(LocalObjectStore(folder / "base", create=False))


def _restored(act: Callable[[Path], str]) -> Callable[[Path], str]:
    """The same on a copy: what one command changes, the next one does not see."""

    def on_copy(folder: Path) -> str:
        kept = folder / "kept"
        shutil.copytree(folder / "base", kept, symlinks=True, copy_function=_copy)
        try:
            return act(folder)
        finally:
            shutil.rmtree(folder / "base")
            kept.rename(folder / "base")

    return on_copy


def _copy(source: str, target: str, **_: object) -> str:
    status = os.lstat(source)
    if stat.S_ISFIFO(status.st_mode):
        os.mkfifo(target)
        return target
    if status.st_size > 1 << 32:
        Path(target).touch()
        os.truncate(target, status.st_size)
        return target
    return str(shutil.copy2(source, target, follow_symlinks=False))


TARGET = "/data/flights"
_drop = _command(lambda base, _: lifecycle.drop(TARGET, place=_at(base)))
_vacuum = _command(lambda base, _: lifecycle.vacuum(TARGET, place=_at(base)))


def _removed(folder: Path) -> str:
    """Drop, then vacuum; both may be refused."""
    ended = _drop(folder), _vacuum(folder)
    return next((each for each in ended if "CRASH" in each), ended[1])


ACTIONS: dict[str, Callable[[Path], str]] = {
    "list": _command(lambda base, _: describe.list_(base)),
    "list-json": _command(lambda base, _: describe.list_(base, output=OutputForm.JSON)),
    "describe": _command(lambda base, _: describe.describe(TARGET, offline=True, place=_at(base))),
    "stats": _command(lambda base, _: stats.stats(base)),
    "query": _query,
    "import": _import,
    "export": _command(
        lambda base, folder: interchange.export(TARGET, str(folder / "out"), place=_at(base))
    ),
    "compact": _restored(_command(lambda base, _: lifecycle.compact(TARGET, place=_at(base)))),
    "recover": _restored(_command(lambda base, _: lifecycle.recover(TARGET, place=_at(base)))),
    "refresh": _restored(_refresh),
    "remove": _removed,
}

if __name__ == "__main__":
    main()
