"""A program in place of `snaploom.run.clusterjob`: it does what the Bundle's text names.

It is a file of its own, so that it starts in milliseconds. The Bundle is no Bundle here but the
name of what to do; what it was called with is written into `$PLAYED_LOG`.
"""

import json
import os
import signal
import subprocess
import sys
import time


def main(arguments: list[str]) -> int:
    named = dict(zip(arguments[::2], arguments[1::2], strict=True))
    with open(named["--bundle"]) as bundle:
        what = json.load(bundle)["play"]
    with open(os.environ["PLAYED_LOG"], "a") as log:
        mode = oct(os.stat(named["--bundle"]).st_mode & 0o777)
        log.write(json.dumps({**named, "mode": mode, "pid": os.getpid(), "play": what}) + "\n")
    match what:
        case "ends":
            return 0
        case "fails":
            sys.stderr.write("error orders: the folder is read-only\n")
            return 3
        case "talks":
            sys.stderr.write("x" * 3_000_000 + "\n" + "last words\r\n")
            return 1
        case "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        case "sleeps":
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
        case "stays":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case "leaves":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            with open(os.environ["PLAYED_LOG"], "a") as log:
                log.write(json.dumps({"pid": child.pid, "play": "left"}) + "\n")
            return 0
    with open(os.environ["PLAYED_LOG"], "a") as log:
        log.write(json.dumps({"pid": os.getpid(), "play": "waiting"}) + "\n")
    time.sleep(600)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
