"""A program: `snaploom`, which gets a signal when it reaches a step of the store of an index.

The step goes on when the signal was heard, so that no test depends on time.
"""

import os
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from snaploom.cli.main import main
from snaploom.run.runevents import Interruption
from snaploom.skipping.stores.folder import FolderIndexStore

Result = TypeVar("Result")
DEADLINE = 60


def signal_at(step: str, number: int) -> None:
    """Send the signal to this process when it first reaches a method of the store."""
    heard = threading.Event()
    original: Callable[..., Result] = getattr(FolderIndexStore, step)
    request = Interruption.request

    def noted(interruption: Interruption) -> None:
        request(interruption)
        heard.set()

    def reached(*arguments: object, **named: object) -> Result:
        if not heard.is_set():
            os.kill(os.getpid(), number)
            # The main thread leaves here by itself; another one waits for it to hear.
            heard.wait(DEADLINE)
        return original(*arguments, **named)

    Interruption.request = noted  # type: ignore[method-assign]
    setattr(FolderIndexStore, step, reached)


if __name__ == "__main__":
    signal_at(sys.argv[1], int(sys.argv[2]))
    main(sys.argv[3:])
