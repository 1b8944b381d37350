"""`snaploom init --from`: declarations of one's own data, and the evidence for them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from snaploom.cli.console import message_console, result_console
from snaploom.cli.init import DataOptions, add_editor_schema
from snaploom.cli.options import writing_to
from snaploom.errors import SnaploomError
from snaploom.loading.nearmisses import counted
from snaploom.loading.project import nearest_file
from snaploom.localfiles import absolute_path, write_file
from snaploom.models.datasource import DataSource
from snaploom.plugins import discovery
from snaploom.plugins.discovery.foundfiles import nobody
from snaploom.run.driverlock import LOCK_FILE, read_lock
from snaploom.sources.databases.drivers import DRIVER_JAR_BY_NAME, jars_for_source

if TYPE_CHECKING:
    from snaploom.plugins.discovery.discover import Discovery
    from snaploom.plugins.discovery.foundfiles import Question
    from snaploom.plugins.discovery.profiles import SourceProfile

MOST_NAMED = 4
"""Columns that a remark names."""
MOST_SHOWN = 20
"""Things of one kind that are printed; the files have more of them."""
MOST_QUESTIONS = 5
"""Questions that a person is asked, those of most effect first; others take the defaults."""


def start_from_data(
    folder: Path | None, uris: Sequence[str], options: DataOptions
) -> tuple[str, Sequence[str]]:
    """Write declarations of what the data is; returns the name of the output, and missing drivers.

    Without a folder, which is new or empty, a column is explained and nothing is written.
    """
    target = absolute_path(folder or Path())
    given = {} if options.depth is None else {"depth": options.depth}
    found = discovery.discover_data(
        uris,
        f"file://{target}/",
        options.root,
        _Terminal() if options.is_asking and folder is not None else nobody,
        lambda address: discovery.read_database(address),
        only=options.only,
        without=options.without,
        **given,
    )
    console = result_console()
    if folder is None:
        for line in discovery.explained(found, options.explain or ""):
            console.print(line, markup=False)
        return "", ()
    with writing_to(folder):
        target.mkdir(parents=True, exist_ok=True)
        for name, text in found.files.items():
            write_file(target / name, text)
        add_editor_schema(target)
    for name in found.files:
        console.print(f"wrote {folder / name}", markup=False)
    _show_found(found)
    sources = (each.resource for each in found.declarations.sources)
    needed = {
        jar.name for source in sources if isinstance(source, DataSource)
        for jar in jars_for_source(source, DRIVER_JAR_BY_NAME)
    }  # fmt: skip
    lock = nearest_file(target / "sources.yaml", LOCK_FILE) if needed else None
    with suppress(SnaploomError):  # `drivers install` names a lock that cannot be read
        needed -= read_lock(lock).keys() if lock else set()
    return found.declarations.output.resource.name, sorted(needed)


def _show_found(found: Discovery) -> None:
    console = result_console()
    read = []
    if found.files_listed:
        read.append(
            f"{counted(found.files_opened, 'file')} of {found.files_listed:,} read "
            f"({found.bytes_read:,} bytes)"
        )
    if found.tables_read:
        read.append(f"{counted(found.tables_read, 'table')} read")
    console.print(f"\n{', '.join([counted(len(found.profiles), 'source'), *read])}", markup=False)
    _list("sources.yaml", (line for p in found.profiles for line in _remarks(p, found)))
    console.print("\nRelationships, best evidence first:", style="bold")
    for one in found.relationships.declared:
        console.print(f"  {one.evidence}", markup=False)
    if not found.relationships.declared:
        console.print("  none", markup=False)
    if found.guesses:
        console.print("\nGuessed (a terminal asks), and how to change it:", style="bold")
        _list("relationships.yaml", (guess.text.removeprefix("guess: ") for guess in found.guesses))
    root = found.tree.root.table
    others = ", ".join(found.tree.other_roots)
    more = f" (--root takes another one: {others})" if others else ""
    console.print(f"\nEach row of the output is one of {root}{more}", markup=False)
    if found.declarations.left_out:
        console.print("\nLeft out:", style="bold")
        _list("sources.yaml", (f"{each.what}: {each.why}" for each in found.declarations.left_out))


def _list(file: str, lines: Iterable[str]) -> None:
    console = result_console()
    shown = list(lines)
    for line in shown[:MOST_SHOWN]:
        console.print(f"  {line}", markup=False)
    if len(shown) > MOST_SHOWN:
        rest = len(shown) - MOST_SHOWN
        console.print(f"  and {rest:,} more, which {file} lists", markup=False)


def _remarks(profile: SourceProfile, found: Discovery) -> Iterator[str]:
    """Limits of what is known of a source, for a person who relies on it."""
    remarks = []
    if profile.rows > profile.rows_read:
        remarks.append(f"{profile.rows_read:,} of {profile.rows:,} rows read")
    key = found.relationships.primary.get(profile.name)
    if key is None:
        remarks.append("no key found")
    if profile.snapshot_column is not None:
        column = profile.snapshot_column
        remarks.append(f"a snapshot for each day of {column.name} ({column.evidence})")
    if profile.is_untyped:
        remarks.append("all columns are text, since headers differ or are numbered")
    texts = sorted({f"`{each}`" for given in profile.null_texts.values() for each in given})
    if texts:
        columns = [*profile.null_texts][:MOST_NAMED]
        rest = " and others" if len(profile.null_texts) > MOST_NAMED else ""
        remarks.append(f"{', '.join(texts)} is NULL in {', '.join(columns)}{rest}")
    remarks += profile.notes
    if remarks:
        shown = f"key {', '.join(key.columns)}; " if key is not None else ""
        yield f"{profile.name}: {shown}{'; '.join(remarks)}"


# Questions on a terminal.


class _Terminal:
    """Asks the questions of most effect, a few of all; the end of the input takes defaults."""

    def __init__(self) -> None:
        self._left = MOST_QUESTIONS

    def __call__(self, questions: Sequence[Question]) -> Sequence[int | None]:
        """Return the answers; None for questions that are not asked."""
        ranked = sorted(range(len(questions)), key=lambda place: -questions[place].effect)
        answers: list[int | None] = [None] * len(questions)
        for place in ranked[: self._left]:
            answers[place] = _answer(questions[place])
        self._left -= min(self._left, len(questions))
        return answers


def _answer(question: Question) -> int | None:
    console = message_console()
    console.print(question.text, markup=False)
    for place, option in enumerate(question.options, start=1):
        console.print(f"  {place}  {option}", markup=False)
    while True:
        console.print(f"Number [{question.default + 1}]: ", markup=False, end="")
        line = sys.stdin.readline()
        text = line.strip()
        if not line:
            return None
        if not text:
            return question.default
        if text.isascii() and text.isdigit() and 1 <= int(text) <= len(question.options):
            return int(text) - 1
        console.print(f"  a number from 1 to {len(question.options)}", markup=False)
