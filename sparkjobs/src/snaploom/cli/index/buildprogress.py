"""Progress of building an index, on standard error.

A line that moves on a terminal, else a line for every quarter of the files.
"""

from __future__ import annotations

from queue import SimpleQueue

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

_PARTS = 4


class IndexProgress:
    """Shows files done; `update` may be called from any thread, the rest from the main thread."""

    def __init__(self, console: Console) -> None:
        """Nothing is shown until the first update."""
        self._console = console
        self._updates: SimpleQueue[tuple[str, int, int]] = SimpleQueue()
        self._tasks: dict[str, TaskID] = {}
        self._parts: dict[str, int] = {}
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed} of {task.total} files", style="dim"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )

    def update(self, label: str, done: int, files: int) -> None:
        """Record how many files are done."""
        self._updates.put((label, done, files))

    def show(self) -> None:
        """Show the updates since the last call."""
        while not self._updates.empty():
            label, done, files = self._updates.get()
            if self._console.is_terminal:
                self._move(label, done, files)
            else:
                self._print(label, done, files)

    def close(self) -> None:
        """Show the rest, and leave the terminal as it was."""
        self.show()
        self._progress.stop()

    def _move(self, label: str, done: int, files: int) -> None:
        if label not in self._tasks:
            self._tasks[label] = self._progress.add_task(label, total=files)
            self._progress.start()
        self._progress.update(self._tasks[label], completed=done, total=files)

    def _print(self, label: str, done: int, files: int) -> None:
        part = _PARTS * done // files if files else _PARTS
        if part > self._parts.get(label, 0):
            self._parts[label] = part
            self._console.print(f"{label}: {done} of {files} files read", markup=False)
