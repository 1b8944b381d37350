"""`make demo`: runs the flights example from data to answer, with the commands a user types."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path("/tmp/snaploom/flights")
HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
BIN = Path(sys.executable).parent

COMMANDS = (
    "snaploom validate examples/flights",
    "snaploom plan flights-wide -f examples/flights",
    "snaploom run flights-wide -f examples/flights",
    "snaploom snapshots flights-wide -f examples/flights",
)
QUERY = "python examples/flights/query.py"
NEXT = """Try next:
  source .venv/bin/activate                              # commands and python of this checkout
  snaploom run flights-wide -f examples/flights          # nothing is due: nothing happens
  python examples/flights/data.py --months 6             # three more months arrive ...
  snaploom run flights-wide -f examples/flights          # ... and only they are woven
  snaploom graph flights-wide -f examples/flights -o svg > flights.svg
Read: examples/flights/README.md. Start your own: snaploom init DIR"""


def run(command: str, *, quiet: bool = False) -> None:
    """Echo a command and run it in the checkout; stop where it fails.

    With `quiet`, standard error is shown only on failure: Spark greets people there.
    """
    print(f"\n$ {command}", flush=True)
    program, *arguments = shlex.split(command)
    done = subprocess.run(
        [str(BIN / program), *arguments],
        cwd=CHECKOUT,
        env={**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"},
        stderr=subprocess.PIPE if quiet else None,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.stderr.write(done.stderr or "")
        sys.exit(done.returncode)


def main() -> None:
    """Write data where there is none, weave it, look at it."""
    parser = argparse.ArgumentParser(description="Weave real flights into a nested table.")
    parser.add_argument("--fresh", action="store_true", help="remove what an earlier demo made")
    if parser.parse_args().fresh:
        shutil.rmtree(FOLDER, ignore_errors=True)
    if (FOLDER / "sources").exists():
        print(f"Data is there already, in {FOLDER}. Start over: {sys.argv[0]} --fresh")
    else:
        run("python examples/flights/data.py")
    for command in COMMANDS:
        run(command)
    run(QUERY, quiet=True)
    print(NEXT)


if __name__ == "__main__":
    main()
