"""Reviews by the webhook with 5,000 objects in view, as the API server asks for them: over HTTPS.

The webhook is a process of its own; what it knows is the flights example, many times over, in one
namespace. Each review changes one object of it, of a kind chosen at random, so that it is judged
with all that it refers to and with all that refer to it.
"""

from __future__ import annotations

import asyncio
import copy
import http.client
import itertools
import json
import math
import multiprocessing
import os
import random
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event, Semaphore
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from figures import Figure, publish
from fleet import examples, flights
from prometheus_client import CollectorRegistry

from snaploom.policy.sqltext import MOST_LITERALS, SqlFacts, SqlForm, SqlText
from snaploom.policy.sqltext import judge as judge_sql
from snaploom_operator.admission.judge import Judge, Submission, read_submission
from snaploom_operator.admission.request import parse_review
from snaploom_operator.admission.webhook import AdmissionMetrics, Webhook
from snaploom_operator.cluster.certificates import issue
from snaploom_operator.process.webhook import SWITCH_SECONDS
from snaploom_operator.serve.http import MOST_CONNECTIONS, serving
from snaploom_operator.settings import AdmissionSettings
from snaploom_operator.store.store import Store
from snaploom_operator.verdicts import running_workers

Raw = dict[str, Any]
Attack = Callable[[], Iterator[bytes]]

OBJECTS = 5_000
REVIEWS = 1_000
ROUNDS = 4
"""Quiet reviews and reviews beside hostile ones, in turn: what changes on the machine meanwhile
changes both."""
AT_ONCE = 8
GOAL_MS = 50.0
GOAL_RATIO = 1.5
HALVES = 64
"""Bodies without an end: `webhookserver.MOST_BODIES`, and once the number of reviews at a time."""
UNDER_OBJECTS = 300
"""Reviews beside the largest objects, of which each takes up to a second."""
LARGE_CLASSES = r"(?i)[\W]|" * 100
"""The beginning of a pattern that takes as long to read as one can."""
NAMESPACE = "team"
HOSTILE = "hostile"
HOSTILE_AT_ONCE = 4
"""Connections on which another namespace sends what is hard to judge, one after the other."""


def objects() -> list[Raw]:
    """As an API server has them: whole copies of the example, in which nothing is missing."""
    copies = math.ceil(OBJECTS / len(examples()))
    declared = itertools.chain.from_iterable(map(flights, range(copies)))
    return [
        {**raw, "metadata": {**raw["metadata"], **kept(number)}}
        for number, raw in enumerate(declared)
    ]


def kept(number: int) -> Raw:
    """What the API server adds to the metadata of an object."""
    return {
        "namespace": NAMESPACE,
        "uid": f"uid-{number}",
        "generation": 1,
        "resourceVersion": str(number + 1),
    }


def serve(folder: str, control: Connection) -> None:
    """Run the webhook until a message on the connection ends it."""
    sys.setswitchinterval(SWITCH_SECONDS)
    store = Store()
    for raw in objects():
        store.put(raw)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/tls.crt", f"{folder}/tls.key")

    async def run() -> None:
        async with running_workers() as workers:
            threads = ThreadPoolExecutor(4)
            judge = Judge(store, AdmissionSettings(), threads, workers)
            metrics = AdmissionMetrics(CollectorRegistry())
            webhook = Webhook(judge.judge, metrics)
            application = webhook.application()
            most = MOST_CONNECTIONS
            async with serving(application, "127.0.0.1", 0, context, answers=most) as port:
                control.send(port)
                await asyncio.to_thread(control.recv)

    asyncio.run(run())


def reviews() -> list[bytes]:
    """Changes of objects chosen at random: another annotation is no change, so the spec differs."""
    chosen = random.Random(7).choices(objects(), k=REVIEWS)
    return [json.dumps(changed(raw, number)).encode() for number, raw in enumerate(chosen)]


def changed(old: Raw, number: int) -> Raw:
    new = copy.deepcopy(old)
    change(new["kind"], new["spec"], number)
    return review(new, number, NAMESPACE, old)


def review(new: Raw, number: int, namespace: str, old: Raw | None = None) -> Raw:
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": str(number),
            "kind": {"group": "snaploom.io", "version": "v1alpha1", "kind": new["kind"]},
            "operation": "UPDATE" if old else "CREATE",
            "namespace": namespace,
            "name": new["metadata"]["name"],
            "userInfo": {"username": "somebody"},
            "object": new,
            "oldObject": old,
        },
    }


def change(kind: str, spec: Raw, number: int) -> None:
    match kind:
        case "DataSource":
            variant = next(iter(spec.values()))
            if "dataQuery" in variant:
                variant["dataQuery"] += f" -- {number}"
            else:
                variant["sourceUriGlobs"].append(f"{variant['sourceUriGlobs'][0]}.{number}")
        case "DataRelationship":
            spec["representations"].reverse()
        case "OutputDataset":
            spec["dataModel"]["maxDepth"] = 8 + number % 4
        case "SkippingIndex":
            spec["enabled"] = not spec.get("enabled", True)
        case _:
            raise AssertionError(kind)


def ask(port: int, folder: str, bodies: Iterable[bytes]) -> Iterator[tuple[float, Raw]]:
    """Milliseconds and answer of each review, or its failure, over one connection."""
    context = ssl.create_default_context(cafile=f"{folder}/ca.crt")
    connection = http.client.HTTPSConnection("localhost", port, context=context)
    for body in bodies:
        begun = perf_counter()
        connection.request("POST", "/validate", body)
        answer = connection.getresponse()
        text = answer.read()
        document = json.loads(text)
        yield (perf_counter() - begun) * 1000, document.get("response", document)


def hostile_texts() -> Iterator[str]:
    """Texts that are hard to judge, each another one, so that no verdict is known before."""
    for number in itertools.count(time.time_ns() // 1_000_000):
        yield "struct(" * 24 + f"a{number}" + ")" * 24
        yield "struct(" * 31 + f"a{number}" + ")" * 31
        yield "map(x" + " " * (number % 1000)
        yield "/* /* */ " * 20 + f"a{number}"
        yield "((" * 15 + f"select {number}" + "))" * 15
        if number % 10 == 0:
            yield largest(number)


def largest(number: int, values: int = MOST_LITERALS - 8) -> str:
    """As many values as a text may have, or fewer."""
    return f"x{number} IN (" + ",".join(f"'{value:013}'" for value in range(values)) + ")"


def hostile(kind: str, spec: Raw, number: int) -> bytes:
    """A review of a new object of another namespace."""
    new = {
        "apiVersion": "snaploom.io/v1alpha1", "kind": kind,
        "metadata": {"name": f"hostile-{number}", "namespace": HOSTILE}, "spec": spec,
    }  # fmt: skip
    return json.dumps(review(new, number, HOSTILE)).encode()


def hostile_sql() -> Iterator[bytes]:
    """Reviews whose SQL is hard to judge."""
    for number, text in enumerate(hostile_texts()):
        selectors = [{"coordinateIncludeRegex": ".*"}]
        spec = {"transformers": [{"selectors": selectors, "expression": {"sql": text}}]}
        yield hostile("FieldTransformer", spec, number)


def hostile_objects() -> Iterator[bytes]:
    """Reviews of objects that take as much work as one can."""
    key = [{"fields": [{"fieldName": "a", "dataType": {"string": {}}}]}]
    for number in itertools.count():
        patterns = [f"{LARGE_CLASSES}{number}{place}" for place in range(256)]
        selectors = [{"coordinateIncludeRegex": each} for each in patterns]
        spec: Raw = {"fieldSelectors": selectors, "metadata": {"k": "v"}}
        yield hostile("MetadataApplicator", spec, number)
        missing = [f"{'ab' * 20}{number}-{place}" for place in range(2_000)]
        spec = {"representations": [{"dataSources": missing, "joinKey": key}]}
        yield hostile("DataRelationship", spec, number)
        options = {f"option{place}": "x" * 4_000 for place in range(250)}
        snapshot = {"fromFieldValue": {"fieldName": "day", "timeFormat": "ISO8601_DATE"}}
        files = {
            "format": "csv", "sourceUriGlobs": ["/data/*.csv"], "snapshot": snapshot,
            "formatOptions": options,
        }  # fmt: skip
        yield hostile("DataSource", {"hdfsLike": files}, number)


@contextmanager
def under_attack(port: int, folder: str, attack: Attack) -> Iterator[Callable[[], int]]:
    """Another namespace sends what is hard to judge; how many answers it had so far.

    It has a process of its own: threads of the one that measures would hold up its clock.
    """
    context = multiprocessing.get_context("spawn")
    counted, ended = context.Value("i", 0), context.Event()
    process = context.Process(target=send, args=(port, folder, attack, counted, ended), daemon=True)
    process.start()
    try:
        while not counted.value:
            time.sleep(0.01)
        yield lambda: counted.value
    finally:
        ended.set()
        process.join()


def send(port: int, folder: str, attack: Attack, counted: Synchronized[int], ended: Event) -> None:
    """Send hostile reviews until that is to end."""
    os.nice(19)  # a client elsewhere takes no processor from the webhook
    bodies, lock = attack(), threading.Lock()

    def some() -> Iterator[bytes]:
        while not ended.is_set():
            with lock:
                body = next(bodies)
            yield body

    def one_after_the_other(_: int) -> None:
        for _answer in ask(port, folder, some()):
            with counted.get_lock():
                counted.value += 1

    with ThreadPoolExecutor(HOSTILE_AT_ONCE) as threads:
        list(threads.map(one_after_the_other, range(HOSTILE_AT_ONCE)))


@contextmanager
def half_sent(port: int, folder: str) -> Iterator[None]:
    """Another sender holds as many bodies without their end as the webhook reads at a time."""
    context = multiprocessing.get_context("spawn")
    ended, begun = context.Event(), context.Semaphore(0)
    args = (port, folder, begun, ended)
    process = context.Process(target=hold_halves, args=args, daemon=True)
    process.start()
    try:
        for _ in range(HALVES):
            begun.acquire()
        yield
    finally:
        ended.set()
        process.terminate()
        process.join()


def hold_halves(port: int, folder: str, begun: Semaphore, ended: Event) -> None:
    """Send halves of bodies, each again as soon as it is given up."""
    trusted = ssl.create_default_context(cafile=f"{folder}/ca.crt")
    head = b"POST /validate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"

    def again_and_again(_: int) -> None:
        while not ended.is_set():
            with (
                suppress(OSError),
                socket.create_connection(
                    ("127.0.0.1", port), source_address=("127.0.0.3", 0)
                ) as plain,
                trusted.wrap_socket(plain, server_hostname="localhost") as connection,
            ):
                connection.sendall(head)
                begun.release()
                connection.recv(1)

    with ThreadPoolExecutor(HALVES) as threads:
        list(threads.map(again_and_again, range(HALVES)))


def answered_beside_halves(port: int, folder: str, bodies: list[bytes]) -> float:
    """The share of reviews that are answered while half-sent bodies are held, in percent."""
    with half_sent(port, folder):
        answers = [answer for _, answer in ask(port, folder, bodies)]
    return sum("allowed" in answer for answer in answers) / len(answers) * 100


def gate_seconds(text: str) -> float:
    """The least of some times that the gate takes for a text."""
    times = []
    for _ in range(7):
        begun = perf_counter()
        verdict = judge_sql(SqlText(text, SqlForm.EXPRESSION))
        times.append(perf_counter() - begun)
        assert isinstance(verdict, SqlFacts), verdict
    return min(times)


def measured(port: int, folder: str, bodies: list[bytes], at_once: int) -> list[float]:
    """Milliseconds of all reviews, `at_once` of them under way."""
    shares = [bodies[start::at_once] for start in range(at_once)]
    with ThreadPoolExecutor(at_once) as threads:
        answers = list(threads.map(lambda share: list(ask(port, folder, share)), shares))
    answered = [each for share in answers for each in share]
    refused = [answer for _, answer in answered if not answer["allowed"] or "warnings" in answer]
    assert not refused, refused[0]
    return [taken for taken, _ in answered]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        issued = issue(["localhost"], datetime.now(UTC))
        for name, content in (
            ("tls.crt", issued.certificate),
            ("tls.key", issued.key),
            ("ca.crt", issued.authority),
        ):
            Path(folder, name).write_bytes(content)
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(
            target=serve, args=(folder, theirs), daemon=True
        )
        process.start()
        port = ours.recv()
        bodies = reviews()
        measured(port, folder, bodies[:100], 1)
        one, by_sql = [], []
        for _ in range(ROUNDS):
            one += measured(port, folder, bodies, 1)
            by_sql += attacked_by(port, folder, bodies, hostile_sql)
        many = measured(port, folder, bodies, AT_ONCE)
        by_objects = attacked_by(port, folder, bodies[:UNDER_OBJECTS], hostile_objects)
        answered = answered_beside_halves(port, folder, bodies[:UNDER_OBJECTS])
        ours.send("end")
        process.join()
    small, large = gate_seconds(largest(0, MOST_LITERALS // 8)), gate_seconds(largest(0))
    figures = (
        Figure.at_most("review p95, one at a time, ms", percentile(one), GOAL_MS),
        Figure.at_most("review median, one at a time, ms", median(one), GOAL_MS),
        Figure(f"review p95, {AT_ONCE} at once, ms", round(percentile(many), 3)),
        Figure("review p99, one at a time, ms", round(percentile(one, 99), 3)),
        Figure(
            "review p99 while another namespace sends hostile SQL, ms",
            round(percentile(by_sql, 99), 3),
        ),
        Figure.at_most(
            "review p99 while another namespace sends hostile SQL, of the quiet one",
            percentile(by_sql, 99) / percentile(one, 99),
            GOAL_RATIO,
        ),
        Figure.at_most(
            "review median while another namespace sends its largest objects, ms",
            median(by_objects),
            GOAL_MS,
        ),
        Figure(
            "review p99 while another namespace sends its largest objects, ms",
            round(percentile(by_objects, 99), 3),
        ),
        Figure(
            f"reviews answered while another sender holds {HALVES} halves of bodies, %",
            round(answered, 1),
            "= 100",
            answered == 100,
        ),
        Figure.at_most("gate, largest legal text, s", large, 1.0),
        Figure.at_most(
            "gate, time a character of the largest legal text, of one an eighth as long",
            large / small * len(largest(0, MOST_LITERALS // 8)) / len(largest(0)),
            GOAL_RATIO,
        ),
    )
    publish("Admission", "make bench-admission", figures)


def attacked_by(port: int, folder: str, bodies: list[bytes], attack: Attack) -> list[float]:
    """Milliseconds of all reviews, one at a time, while another namespace sends hostile ones."""
    for body in itertools.islice(attack(), 6):  # what a schema refuses would be no attack
        assert isinstance(read_submission(parse_review(body)), Submission)
    with under_attack(port, folder, attack) as answered:
        before = answered()
        found = measured(port, folder, bodies, 1)
        others = answered() - before
    assert others > 0
    print(f"{others} hostile reviews were answered beside {len(found)} others", flush=True)
    return found


def percentile(values: list[float], share: int = 95) -> float:
    return quantiles(values, n=100)[share - 1]


if __name__ == "__main__":
    main()
