"""`make cluster`: a control plane for a person, until Ctrl-C; what is in it is kept."""

import fcntl
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.cluster.cluster import running_control_plane

FOLDER = Path(__file__).parents[3] / "build" / "cluster"


def main(folder: Path = FOLDER) -> None:
    """Start it, print how to reach it, and wait for Ctrl-C or the end of a server."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with _exclusive(folder):
            print("Starting etcd, kube-apiserver and kube-controller-manager ...", flush=True)
            _serve(folder)
    except KeyboardInterrupt:
        print("Stopped.")
    except RuntimeError as failure:
        sys.exit(str(failure))


def _serve(folder: Path) -> None:
    with running_control_plane(folder) as plane:
        plane.install_crds()
        print(
            f"Ready, with the CRDs of crds/ and without nodes. In another terminal:\n\n"
            f"  export KUBECONFIG={plane.kubeconfig}\n\n"
            f"Data and logs are in {folder}. Ctrl-C stops it.",
            flush=True,
        )
        while True:
            plane.check_running()
            time.sleep(1)


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Keep others out of the folder.

    Raises:
        RuntimeError: another one serves it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"There is one already: export KUBECONFIG={folder / 'kubeconfig'}"
            raise RuntimeError(message) from None
        yield


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
