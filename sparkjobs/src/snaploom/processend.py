"""The end of a process of ours, once its work is done."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn


def end_process(code: int) -> NoReturn:
    """End this process without taking the interpreter down (decision 0061).

    Threads that nobody waits for (PySpark's, those of an interrupted run, Arrow's) may be at work
    still. Python ends them in the middle of C++ when it takes the interpreter down, upon which C++
    aborts the process, after everything was done.
    """
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()  # of logging and temporary folders; it has no public name
    for stream in (sys.stdout, sys.stderr):
        # The other end of a pipe may be closed.
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
