"""Waits for permission on stdin, then executes the program of its arguments.

A local run and its process are recorded in the cluster before the job starts: otherwise an operator
that crashes in between would leave an unknown job, and its successor would start a second one. If
the operator dies before it gave permission, stdin is closed and nothing was started.
"""

import os
import sys


def main(program: list[str]) -> None:
    """Wait, then execute the program; exit code 1 without permission."""
    if not os.read(sys.stdin.fileno(), 1):
        sys.exit(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.execv(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1:])
