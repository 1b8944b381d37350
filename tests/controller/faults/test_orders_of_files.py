"""A folder of declarations that is applied in any order ends in the same state, and quietly."""

import itertools
import random

import yaml
from support.documentation.examples import REPOSITORY
from support.operator.operatorharness import is_ready, started

from snaploom_operator.cluster.port import OURS, SPARK_APPLICATIONS

FLIGHTS = REPOSITORY / "examples" / "flights"
ORDERS = 20


def declarations():
    texts = [path.read_text("utf-8") for path in sorted(FLIGHTS.glob("*.yaml"))]
    return [*itertools.chain.from_iterable(map(yaml.safe_load_all, texts))]


async def applied(order):
    """Apply declarations one by one, with the operator at work in between."""
    harness = await started()
    for raw in order:
        await harness.apply(raw)
        await harness.settle()
    for identity in ("OutputDataset/flights-wide", "SkippingIndex/flights-wide"):
        await harness.wait_for(identity, is_ready)
    await harness.settle()
    return harness


def state_of(harness):
    """Facts of every status, without times, versions and names of runs."""
    found = {}
    for stored in itertools.chain.from_iterable(map(harness.fake.all, OURS.values())):
        status = stored["status"]
        conditions = {(c["type"], c["status"], c["reason"]) for c in status["conditions"]}
        kept = ("plan", "usedBy", "realised", "snapshotCount", "state")
        facts = {key: status.get(key) for key in kept}
        found[stored["kind"], stored["metadata"]["name"]] = (conditions, facts)
    return found, len(harness.fake.all(SPARK_APPLICATIONS))


async def test_any_order_ends_in_the_same_state_and_reports_nothing_that_was_yet_to_come():
    wanted = state_of(await applied(declarations()))
    for seed in range(ORDERS):
        order = declarations()
        random.Random(seed).shuffle(order)
        harness = await applied(order)
        assert state_of(harness) == wanted, seed
        reasons = {str(note.reason) for _, note in harness.notes.found}
        assert reasons == {"RunStarted", "RunSucceeded"}, seed
