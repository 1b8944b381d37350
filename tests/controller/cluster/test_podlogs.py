"""Logs of pods are asked for with the time of each line."""

from __future__ import annotations

from pathlib import Path

from support.operator.scriptedapi import Answer, running_scripted_api, write_plain_kubeconfig

from snaploom.models.common import parse_instant
from snaploom_operator.cluster.client import LogLine, pod_log

SINCE = "2026-01-01T00:00:00Z"
TIME = "2026-01-01T00:00:01.234567891Z"


async def test_lines_have_the_time_at_which_the_node_took_them_in(tmp_path: Path) -> None:
    async with running_scripted_api() as server:
        server.answers(Answer(lines=(f"{TIME} published 7 rows\n".encode(), b"of no time\n")))
        kubeconfig = write_plain_kubeconfig(tmp_path / "config", server.url)
        log = pod_log("team", "driver", is_followed=True, since=SINCE, kubeconfig=kubeconfig)
        found = [line async for line in log]
    assert found[0] == LogLine(parse_instant(TIME), "published 7 rows")
    assert found[1].text == "of no time"
    (asked,) = server.asked
    assert asked.path == "/api/v1/namespaces/team/pods/driver/log"
    assert asked.query == {"timestamps": "true", "follow": "true", "sinceTime": SINCE}


async def test_a_log_that_ends_is_asked_for_as_a_whole(tmp_path: Path) -> None:
    async with running_scripted_api() as server:
        server.answers(Answer(lines=(f"{TIME} \n".encode(),)))
        kubeconfig = write_plain_kubeconfig(tmp_path / "config", server.url)
        log = pod_log("team", "driver", is_followed=False, kubeconfig=kubeconfig)
        assert [line.text async for line in log] == [""]
    assert server.asked[0].query == {"timestamps": "true"}
