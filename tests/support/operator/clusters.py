"""Objects for tests of the port, and waiting for what a cluster does in the background."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from snaploom_operator.cluster.port import CONFIG_MAPS, OURS, ApiResource, Cluster
from snaploom_operator.errors import ObjectMissing

Raw = dict[str, Any]
DEADLINE = 60.0
TRANSFORMERS = OURS["FieldTransformer"]
"""The simplest of our kinds."""

Result = TypeVar("Result")


def an_object(resource: ApiResource, name: str, **parts: Any) -> Raw:
    metadata = {"name": name} | parts.pop("metadata", {})
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        **parts,
    }


def a_config_map(name: str, data: Raw | None = None, **metadata: Any) -> Raw:
    return an_object(CONFIG_MAPS, name, metadata=metadata, data=data or {})


def a_transformer(name: str = "rounding", sql: str = "round(value)", **metadata: Any) -> Raw:
    transformer = {
        "selectors": [{"coordinateIncludeRegex": ".*"}],
        "expression": {"sql": sql},
    }
    return an_object(TRANSFORMERS, name, metadata=metadata, spec={"transformers": [transformer]})


def owned_by(owner: Any) -> list[Raw]:
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    return [reference | {key: owner["metadata"][key] for key in ("name", "uid")}]


async def until(condition: Callable[[], Awaitable[bool]], patience: float = DEADLINE) -> None:
    """Wait for what happens in the background."""
    deadline = time.monotonic() + patience
    while not await condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.02)


async def until_gone(cluster: Cluster, resource: ApiResource, namespace: str, name: str) -> None:
    async def is_gone() -> bool:
        try:
            await cluster.get(resource, namespace, name)
        except ObjectMissing:
            return True
        return False

    await until(is_gone)


def at_once(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine that never waits, as those of a cluster in memory."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        result: Result = ended.value
        return result
    raise AssertionError("it waits")
