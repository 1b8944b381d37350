"""Real servers that speak S3, started on free ports by the programs that .ci installs."""

import contextlib
import hashlib
import hmac
import os
import socket
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urlencode

from support.servers.gotools import go_tool
from support.servers.ports import READY_SECONDS, free_port, running_server

CI = Path(__file__).parents[3] / ".ci"
BUCKET = "looms"
ACCESS_KEY = "snaploom-tests"
SECRET_KEY = "s3cr3t-that-nobody-may-show"


@dataclass(frozen=True)
class S3Server:
    endpoint: str
    secret: str = SECRET_KEY

    @property
    def environment(self) -> Mapping[str, str]:
        """What a process must have in its environment to use it."""
        return {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "us-east-1",
        }

    def put(self, key: str) -> None:
        """Make an empty object; its name may be one that no client of ours would give."""
        signed = sign_url("PUT", self.endpoint, f"/{BUCKET}/{quote(key)}")
        with urllib.request.urlopen(urllib.request.Request(signed, method="PUT"), timeout=30):
            return


def sign_url(method: str, endpoint: str, path: str) -> str:
    """A URL that may be asked for a minute, signed as S3 wants it (signature version 4)."""
    now, host = datetime.now(UTC), endpoint.split("://")[1]
    scope = f"{now:%Y%m%d}/us-east-1/s3/aws4_request"
    query = urlencode(
        {
            "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
            "X-Amz-Credential": f"{ACCESS_KEY}/{scope}",
            "X-Amz-Date": f"{now:%Y%m%dT%H%M%SZ}",
            "X-Amz-Expires": "60",
            "X-Amz-SignedHeaders": "host",
        }
    )
    request = f"{method}\n{path}\n{query}\nhost:{host}\n\nhost\nUNSIGNED-PAYLOAD"
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{now:%Y%m%dT%H%M%SZ}\n{scope}\n{digest}"
    key = f"AWS4{SECRET_KEY}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    return f"{endpoint}{path}?{query}&X-Amz-Signature={signature}"


@contextmanager
def environment_of(server: S3Server) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in server.environment}
    os.environ.update(server.environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def running_versitygw(
    folder: Path,
    address: str = "127.0.0.1",
    port: int | None = None,
    secret: str = SECRET_KEY,
) -> Iterator[S3Server]:
    """Versitygw over a folder of files, in which a bucket is a folder.

    Args:
        folder: for its files and its log; what is in it is there again.
        address: of this machine, where it listens.
        port: where it listens; any that is free, if omitted.
        secret: the secret key that it knows.
    """
    (folder / "buckets" / BUCKET).mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    command = [str(go_tool("versitygw")), "--access", ACCESS_KEY, "--secret", secret]
    command += ["--port", f"{address}:{port}", "posix", str(folder / "buckets")]
    with _running(command, folder / "versitygw.log", port, address):
        yield S3Server(f"http://{address}:{port}", secret)


@contextmanager
def running_moto(folder: Path) -> Iterator[S3Server]:
    """Moto, which keeps everything in memory."""
    port = free_port()
    command = [installed("moto"), "-H", "127.0.0.1", "-p", str(port)]
    with _running(command, folder / "moto.log", port):
        endpoint = f"http://127.0.0.1:{port}"
        made = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")
        with urllib.request.urlopen(made, timeout=READY_SECONDS):
            yield S3Server(endpoint)


def installed(program: str, *arguments: str) -> str:
    """What a script of .ci installs where it is missing: a path."""
    script = [str(CI / program), *arguments]
    return subprocess.run(script, check=True, capture_output=True, text=True).stdout.strip()


def _running(
    command: list[str], log: Path, port: int, address: str = "127.0.0.1"
) -> AbstractContextManager[None]:
    def is_ready() -> bool:
        with contextlib.suppress(OSError), socket.create_connection((address, port), 1):
            return True
        return False

    return running_server(command, log, is_ready)
