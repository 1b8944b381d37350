"""`snaploom init --from`: declarations of one's own data, and the evidence for them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from snaploom.cli.console import counted, message_console, result_console
from snaploom.cli.init import add_editor_schema
from snaploom.cli.options import writing_to
from snaploom.localfiles import write_file
from snaploom.plugins import discovery

if TYPE_CHECKING:
    from snaploom.plugins.discovery.discover import Discovery
    from snaploom.plugins.discovery.profiles import DatabaseAddress, DatabaseContent
    from snaploom.plugins.discovery.relationships import Relationship

MOST_SHOWN = 20
"""Things left out that are printed; the files have more of them."""


def start_from_data(
    folder: Path, uris: Sequence[str], root: str | None, is_interactive: bool
) -> str:
    """Write declarations of what the data is, and show what they rest on.

    Args:
        folder: new or empty.
        uris: paths of folders and files, URIs of buckets, and databases.
        root: source whose rows the output has; one is chosen where it is None.
        is_interactive: whether to ask about relationships with weak evidence.

    Returns:
        Name of the declared output.
    """
    target = folder.absolute()
    ask = _ask if is_interactive else None
    found = discovery.discover_data(uris, f"file://{target}/", root, ask, _read)
    with writing_to(folder):
        target.mkdir(parents=True, exist_ok=True)
        for name, text in found.files.items():
            write_file(target / name, text)
        add_editor_schema(target)
    console = result_console()
    for name in found.files:
        console.print(f"wrote {folder / name}", markup=False)
    _show_found(found)
    return found.declarations.output.resource.name


def _read(address: DatabaseAddress) -> DatabaseContent:
    return discovery.read_database(address)


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
    console.print("\nRelationships, best evidence first:", style="bold")
    for one in found.relationships.declared:
        console.print(f"  {one.evidence}", markup=False)
    if not found.relationships.declared:
        console.print("  none", markup=False)
    if found.relationships.weak:
        console.print("\nWeak evidence, in comments only (--interactive asks):", style="bold")
        for one in found.relationships.weak:
            console.print(f"  {one.evidence}", markup=False)
    if found.guesses:
        console.print("\nGuessed:", style="bold")
        for guess in found.guesses:
            console.print(f"  {guess.text.removeprefix('guess: ')}", markup=False)
    root = found.tree.root.table
    others = ", ".join(found.tree.other_roots)
    more = f" (--root takes another one: {others})" if others else ""
    console.print(f"\nEach row of the output is one of {root}{more}", markup=False)
    if found.declarations.left_out:
        console.print("\nLeft out:", style="bold")
        for each in found.declarations.left_out[:MOST_SHOWN]:
            console.print(f"  {each.what}: {each.why}", markup=False)
        rest = len(found.declarations.left_out) - MOST_SHOWN
        if rest > 0:
            console.print(f"  and {rest:,} more, which sources.yaml lists", markup=False)


def _ask(one: Relationship) -> bool:
    """Ask on the terminal; the end of the input is a no."""
    console = message_console()
    console.print(f"{one.evidence}\nDeclare it? [y/N] ", markup=False, end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
