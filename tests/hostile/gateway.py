"""A program with a session of Spark that reports who could connect to it; run by tests.

`python gateway.py REPORT`, or as the application of `spark-submit`.
"""

import json
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

from snaploom.models.run import RunSettings
from snaploom.run.session.spark import build_session

LISTENING = "0A"
COMMAND = b"c\nz:java.lang.System\ngetProperty\nsjava.version\ne\n"
"""What a Python program would ask Java, without having shown the token."""


def listened_at(process: int) -> list[str]:
    """Addresses, in the kernel's form, at which a process listens."""
    folder = Path("/proc") / str(process)
    links = set[str]()
    for path in (folder / "fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed meanwhile
            links.add(os.readlink(path))
    own = {link.removeprefix("socket:[").rstrip("]") for link in links if "socket:" in link}
    found = []
    for table in ("tcp", "tcp6"):
        for line in (folder / "net" / table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in own:
                found.append(fields[1].partition(":")[0])
    return sorted(set(found))


def answer_without_token(port: int) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(COMMAND)
        connection.settimeout(20)
        try:
            return connection.recv(1024).decode()
        except ConnectionError:
            return ""


def seen_in_arguments(token: str) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if token in path.read_text(errors="replace"):
                return True
        except OSError:
            continue  # it has ended meanwhile
    return False


def main(report: Path) -> None:
    spark = build_session("gateway", RunSettings())
    gateway = spark.sparkContext._gateway
    java = int(gateway.jvm.java.lang.ProcessHandle.current().pid())
    token = gateway.gateway_parameters.auth_token
    facts = {
        "listening": listened_at(java),
        "version": str(gateway.jvm.java.lang.System.getProperty("java.version")),
        "answer": answer_without_token(gateway.gateway_parameters.port),
        "token": token,
        "isInArguments": seen_in_arguments(token),
        "isInSettings": any(token in value for _, value in spark.sparkContext.getConf().getAll()),
    }
    report.write_text(json.dumps(facts))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
