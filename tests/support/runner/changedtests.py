"""`python -m support.runner.changedtests COMMIT`: the tests that changes can break."""

import subprocess
import sys
from pathlib import Path

from support.runner.testimports import REPOSITORY, files_to_test


def changed_files(commit: str) -> frozenset[Path]:
    """Files that differ from a commit, committed or not, and new ones; absolute paths."""
    asked = (("diff", "--name-only", commit), ("ls-files", "--others", "--exclude-standard"))
    printed = (
        subprocess.run(
            ["git", *each], cwd=REPOSITORY, check=True, stdout=subprocess.PIPE, text=True
        ).stdout
        for each in asked
    )
    return frozenset(REPOSITORY / name for text in printed for name in text.splitlines())


if __name__ == "__main__":
    for path in files_to_test(changed_files(sys.argv[1])):
        print(path.relative_to(REPOSITORY))
