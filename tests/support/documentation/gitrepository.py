"""A local Git repository as the remote of those who pull from one."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

IDENTITY = {
    "GIT_AUTHOR_NAME": "Tests", "GIT_AUTHOR_EMAIL": "tests@snaploom.invalid",
    "GIT_COMMITTER_NAME": "Tests", "GIT_COMMITTER_EMAIL": "tests@snaploom.invalid",
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip
"""Nobody's own settings are read: they may sign, or run hooks."""


class GitRepository:
    """One branch, `main`, in a folder that is made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._git("init", "--quiet", "--initial-branch", "main")

    @property
    def url(self) -> str:
        """Where others pull from."""
        return self.folder.as_uri()

    def copy(self, source: Path, place: str) -> None:
        """Take in a folder."""
        shutil.copytree(source, self.folder / place)

    def path(self, name: str) -> Path:
        """A file of the work tree, whose folder there is."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def change(self, name: str, old: str, new: str) -> None:
        """Replace a text that a file has exactly once."""
        path = self.folder / name
        before = path.read_text("utf-8")
        assert before.count(old) == 1, f"{name} has it {before.count(old)} times: {old}"
        path.write_text(before.replace(old, new), "utf-8")

    def commit(self, message: str) -> str:
        """Commit everything as it is; the commit."""
        self._git("add", "--all")
        self._git("commit", "--quiet", "--message", message)
        return self.head

    @property
    def head(self) -> str:
        """The newest commit."""
        return self._git("rev-parse", "HEAD").strip()

    def _git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=self.folder, env=os.environ | IDENTITY, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
