"""Programs of Go that tests use; the project's own script builds them when the cache has none."""

import subprocess
from functools import cache
from pathlib import Path

_BUILD = Path(__file__).parents[3] / ".ci" / "gotool"


@cache
def go_tool(name: str) -> Path:
    """The program of a folder of tests/support/components that holds nothing but a `go.mod`.

    Raises:
        RuntimeError: it cannot be built; the script has printed why.
    """
    done = subprocess.run([_BUILD, name], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{name} cannot be built: see the output of .ci/gotool")
    return Path(done.stdout.strip())
