"""Certificates that rotate under load: no review fails while the next one is taken up."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path

import pytest
from support.declared.declarations import files
from support.hostile.rawhttp import certificate_of, raw_connection, request
from support.operator.fakecluster import FakeCluster
from support.operator.reviews import a_review
from support.operator.webhooks import HOST, install, serving_webhook, settings_for
from support.servers.certificates import Authority

from snaploom_operator.serve import http

ROTATIONS = 5
ASKERS = 4


def renewed(folder: Path, authority: Authority, number: int) -> None:
    """As the kubelet does it: new files in a folder of their own, then one link is turned."""
    install(authority.issue(HOST, f"webhook-{number}"), folder / f"..{number}")
    link = folder / "..next"
    link.symlink_to(f"..{number}")
    link.replace(folder / "..data")


async def test_no_review_fails_while_certificates_rotate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "RELOAD_SECONDS", 0.02)
    authority = Authority(tmp_path, "authority")
    folder = tmp_path / "certificates"
    folder.mkdir()
    renewed(folder, authority, 0)
    for name in (http.CERTIFICATE, http.KEY):
        (folder / name).symlink_to(f"..data/{name}")
    trusted = ssl.create_default_context(cafile=authority.certificate)
    failures: list[str] = []
    served: set[bytes] = set()
    done = asyncio.Event()

    body = json.dumps(a_review(files("customer"))).encode()
    sent = request(body, f"Content-Length: {len(body)}", "Connection: close")

    async def ask(port: int) -> None:
        while not done.is_set():
            try:
                async with raw_connection(HOST, port, trusted) as connection:
                    await connection.send(sent)
                    answer = await connection.reader.read()
                    served.add(certificate_of(connection))
            except (OSError, ssl.SSLError) as error:
                failures.append(repr(error))
            else:
                if b'"allowed": true' not in answer:
                    failures.append(answer.decode(errors="replace"))

    async def until_served(number: int) -> None:
        while len(served) < number:
            await asyncio.sleep(0.01)

    webhook = serving_webhook(FakeCluster(namespaces=["team"]), settings_for(folder))
    async with webhook as ports, asyncio.TaskGroup() as group:
        for _ in range(ASKERS):
            group.create_task(ask(ports.review))
        async with asyncio.timeout(60):
            for number in range(1, ROTATIONS + 1):
                await until_served(number)
                renewed(folder, authority, number)
            await until_served(ROTATIONS + 1)
        done.set()
    assert failures == []
    assert len(served) == ROTATIONS + 1
