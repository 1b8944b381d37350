"""Verdicts about SQL and regular expressions of users, computed by worker processes."""

import asyncio
import logging
import sys
import threading
from asyncio.subprocess import PIPE, Process
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import astuple, dataclass, field
from itertools import chain
from typing import Protocol, overload

from snaploom.policy.sqltext import SqlFacts, SqlFault, SqlText, SqlVerdict
from snaploom.policy.verdicts import (
    JudgedText,
    RegexList,
    RegexVerdict,
    Verdict,
    read_verdict,
    text_line,
    too_large,
    too_long,
)
from snaploom_operator.errors import TextNotJudged

_log = logging.getLogger(__name__)


LARGEST_CACHE = 8_000_000
"""Approximate bytes of cached texts and verdicts: some 10,000 ordinary ones."""
_OF_ONE = 500
"""Bytes of a cached verdict besides its texts."""
_OF_NAME = 60
"""Bytes of a short text of Python besides its characters, with its place in a tuple."""


class VerdictCache:
    """A thread-safe cache of verdicts by text, of an approximate size in bytes."""

    def __init__(self, largest: int = LARGEST_CACHE) -> None:
        self._largest = largest
        self._verdicts: dict[JudgedText, Verdict] = {}
        self._shares: dict[str, OrderedDict[JudgedText, int]] = {}
        """Sizes of texts by namespace, the oldest first."""
        self._sizes: Counter[str] = Counter()
        self._lock = threading.Lock()

    def get(self, text: JudgedText) -> Verdict | None:
        with self._lock:
            return self._verdicts.get(text)

    def put(self, namespace: str, text: JudgedText, verdict: Verdict) -> None:
        """Cache a verdict that a namespace requested."""
        with self._lock:
            if text in self._verdicts:
                return
            size = _size(text, verdict)
            self._verdicts[text] = verdict
            self._shares.setdefault(namespace, OrderedDict())[text] = size
            self._sizes[namespace] += size
            while self._sizes.total() > self._largest:
                self._drop()

    def _drop(self) -> None:
        ((namespace, _),) = self._sizes.most_common(1)
        share = self._shares[namespace]
        text, size = share.popitem(last=False)
        del self._verdicts[text]
        self._sizes[namespace] -= size
        if not share:
            del self._shares[namespace], self._sizes[namespace]


def _size(text: JudgedText, verdict: Verdict) -> int:
    if isinstance(text, RegexList):
        return _OF_ONE + sum(len(pattern) + 2 * _OF_NAME for pattern in text.patterns)
    size = _OF_ONE + len(text.text)
    if isinstance(verdict, SqlFacts):
        lists = (each for each in astuple(verdict) if isinstance(each, tuple))
        size += sum(len(name) + _OF_NAME for names in lists for name in names)
    return size


_NOT_YET = SqlFault("it is not analysed yet")
_NONE_YET = RegexVerdict(())
"""Placeholders of missing verdicts; findings with them are discarded."""


class TextVerdicts(Protocol):
    """Computes verdicts about texts."""

    def known(self, text: JudgedText) -> Verdict | None: ...

    async def judged(
        self, namespace: str, texts: Iterable[JudgedText]
    ) -> Mapping[JudgedText, Verdict]:
        """Compute verdicts; a namespace waits for its own texts only."""


class RecordingJudge:
    """A `TextJudge` that returns known verdicts and records missing ones; for one validation."""

    def __init__(self, verdicts: TextVerdicts) -> None:
        self._verdicts = verdicts
        self._fetched: dict[JudgedText, Verdict] = {}
        self.missing: set[JudgedText] = set()
        """Requested texts without a verdict."""
        self.placeholders = 0
        """Number of returned placeholders."""

    @overload
    def __call__(self, text: SqlText, /) -> SqlVerdict: ...

    @overload
    def __call__(self, text: RegexList, /) -> RegexVerdict: ...

    def __call__(self, text: JudgedText, /) -> Verdict:
        """The verdict of a text, or a placeholder."""
        verdict = self._fetched.get(text) or self._verdicts.known(text)
        if verdict is None:
            self.missing.add(text)
            self.placeholders += 1
            return _NOT_YET if isinstance(text, SqlText) else _NONE_YET
        self._fetched[text] = verdict
        return verdict

    async def fetch_missing(self, namespace: str) -> None:
        self._fetched.update(await self._verdicts.judged(namespace, self.missing))
        self.missing = set()


PROCESSES = 2
"""One namespace can occupy one of them; the other is for the rest."""
SECONDS = 20.0
"""Wall-clock limit of a text, if its process does not stop by itself after two seconds of processor
time (`regexlist.MOST_SECONDS`)."""
START_SECONDS = 60.0
"""Limit of a process' start, which takes 0.2 s on an idle machine."""
LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of a verdict: facts of a text are no longer than a few times itself."""
WORKER = (sys.executable, "-P", "-m", "snaploom.policy.verdicts")
"""The program; `-P` keeps the folder that it is started in out of its path."""


@dataclass(eq=False)
class _Job:
    text: JudgedText
    verdict: asyncio.Future[Verdict] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def refuse(self, error: Exception) -> None:
        if not self.verdict.done():
            self.verdict.set_exception(error)


class TextWorkers:
    """A pool of worker processes; `running_workers` creates one and closes it."""

    def __init__(self, program: Sequence[str] = WORKER, seconds: float = SECONDS) -> None:
        self._program = program
        self._seconds = seconds
        self._cache = VerdictCache()
        self._waiting: OrderedDict[str, deque[_Job]] = OrderedDict()
        self._busy: dict[str, int] = {}
        self._idle: list[Process] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def known(self, text: JudgedText) -> Verdict | None:
        """The cached verdict of a text; thread-safe."""
        return self._cache.get(text)

    async def judged(
        self, namespace: str, texts: Iterable[JudgedText]
    ) -> Mapping[JudgedText, Verdict]:
        """Compute verdicts, in the order in which a namespace requests them.

        Raises:
            TextNotJudged: no process can be started, or the pool is closed.
        """
        if self._is_closed:
            raise _stopping()
        jobs = [_Job(text) for text in dict.fromkeys(texts)]
        self._waiting.setdefault(namespace, deque()).extend(jobs)
        self._begin()
        try:
            verdicts = await asyncio.gather(*(job.verdict for job in jobs))
        except BaseException:
            for job in jobs:  # the caller does not wait for the others either
                job.verdict.cancel()
            raise
        return {job.text: verdict for job, verdict in zip(jobs, verdicts, strict=True)}

    async def close(self) -> None:
        """Kill all workers and fail all queued texts."""
        self._is_closed = True
        for job in chain.from_iterable(self._waiting.values()):
            job.refuse(_stopping())
        self._waiting.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for process in self._idle:
            await _end(process)
        self._idle.clear()

    def _begin(self) -> None:
        while sum(self._busy.values()) < PROCESSES and (chosen := self._next()) is not None:
            namespace, job = chosen
            self._busy[namespace] = self._busy.get(namespace, 0) + 1
            task = asyncio.create_task(self._work(namespace, job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _next(self) -> tuple[str, _Job] | None:
        """The next text of the longest waiting namespace that may have another worker."""
        most = max(1, PROCESSES - 1)
        for namespace in list(self._waiting):
            jobs = self._waiting[namespace]
            while jobs and jobs[0].verdict.done():  # its caller was cancelled
                jobs.popleft()
            if not jobs:
                del self._waiting[namespace]
            elif self._busy.get(namespace, 0) < most:
                self._waiting.move_to_end(namespace)
                return namespace, jobs.popleft()
        return None

    async def _work(self, namespace: str, job: _Job) -> None:
        try:
            verdict = self.known(job.text) or await self._verdict(job.text)
            self._cache.put(namespace, job.text, verdict)
            if not job.verdict.done():
                job.verdict.set_result(verdict)
        except asyncio.CancelledError:
            job.refuse(_stopping())
            raise
        except Exception as error:  # noqa: BLE001 - every error is passed on to the caller
            job.refuse(error)
        finally:
            self._busy[namespace] -= 1
            if not self._busy[namespace]:
                del self._busy[namespace]
            self._begin()

    async def _verdict(self, text: JudgedText) -> Verdict:
        """The verdict of a worker; one retry, since a worker may die of another cause."""
        for _ in range(2):
            process = self._idle.pop() if self._idle else await self._started()
            try:
                async with asyncio.timeout(self._seconds):
                    line = await _asked(process, text)
            except TimeoutError:
                await _end(process)
                _log.warning("a text was not analysed within %g seconds", self._seconds)
                return too_long(text)
            except BaseException:
                await _end(process)
                raise
            if line.endswith(b"\n"):
                self._idle.append(process)
                return read_verdict(line)
            await _end(process)
        return too_large(text)

    async def _started(self) -> Process:
        try:
            process = await asyncio.create_subprocess_exec(
                *self._program, stdin=PIPE, stdout=PIPE, limit=LONGEST_LINE
            )
        except OSError as error:
            raise _not_started("a worker cannot be started", str(error)) from error
        assert process.stdout is not None
        try:
            async with asyncio.timeout(START_SECONDS):
                ready = await process.stdout.readline()
        except TimeoutError as error:
            await _end(process)
            found = f"no answer after {START_SECONDS} s"
            raise _not_started("a worker did not start in time", found) from error
        except BaseException:
            await _end(process)
            raise
        if not ready:
            await _end(process)
            raise _not_started("a worker ended during its start", "no line from it")
        return process


def _not_started(message: str, found: str) -> TextNotJudged:
    return TextNotJudged(message, found=found, expected="room for one more process")


def _stopping() -> TextNotJudged:
    return TextNotJudged(
        "the operator is stopping",
        expected="an operator that runs",
        hint="send it again: another replica answers, or this one when it is back",
    )


async def _asked(process: Process, text: JudgedText) -> bytes:
    """The answer of a worker; without a line end if the worker died."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(text_line(text))
    with suppress(BrokenPipeError, ConnectionResetError):
        await process.stdin.drain()
    return await process.stdout.readline()


async def _end(process: Process) -> None:
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


@asynccontextmanager
async def running_workers() -> AsyncIterator[TextWorkers]:
    """A pool that is closed with the context; workers are started on demand."""
    workers = TextWorkers()
    try:
        yield workers
    finally:
        await workers.close()
