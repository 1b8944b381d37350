"""A program: one run of a job over a model of `support.weaving.loom`, killed at a crash point.

It runs by itself because a killed Python takes its Spark along.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from support.weaving.loom import Loom

from snaploom.models.run import RunSettings
from snaploom.output.folder import CrashPoint
from snaploom.run.session.spark import build_session


def main(place: Path, point: CrashPoint) -> None:
    def die(here: CrashPoint) -> None:
        if here is point:
            os.kill(os.getpid(), signal.SIGKILL)

    spark = build_session("killed", RunSettings())
    Loom(place).weave(spark, reached=die)


if __name__ == "__main__":
    main(Path(sys.argv[1]), CrashPoint(sys.argv[2]))
