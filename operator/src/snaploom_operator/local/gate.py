"""Waits for permission on its standard input, then becomes the program that it was called with.

A local run must stand in the cluster, with its process, before it does anything: else an operator
that dies in between leaves a job that nobody knows of, and its successor starts a second one. When
the operator dies before it gave permission, standard input ends, and nothing was done.
"""

import os
import sys


def main(program: list[str]) -> None:
    """Wait, and become the program; exit code 1 when there will be no permission."""
    if not os.read(sys.stdin.fileno(), 1):
        sys.exit(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())
    os.execv(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1:])
