"""The life of an index: create, refresh, alter, drop, vacuum, recover, and what must not happen."""

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from obstore.store import MemoryStore
from support.skipping.faketarget import FakeTarget, as_rows
from support.skipping.indexstores import DEADLINE, POINTS, SPAWN, folder_store, refresh_and_die
from support.storage.faultystore import Fault, FaultyStore, times

from snaploom.errors import (
    IndexAlreadyExists,
    IndexBusy,
    IndexNotFound,
    IndexNotPossible,
    IndexOwned,
    SnaploomError,
)
from snaploom.files.cloud import ObstoreObjectStore
from snaploom.models.common import NANOS_PER_SECOND, EpochNanos
from snaploom.models.skippingindex import Index, IndexState, RefreshMode
from snaploom.skipping.lifecycle.alteration import Alteration, alter
from snaploom.skipping.lifecycle.declaration import Declaration
from snaploom.skipping.lifecycle.description import describe
from snaploom.skipping.lifecycle.operations import (
    Timing,
    compact,
    create,
    drop,
    recover,
    refresh,
    vacuum,
)
from snaploom.skipping.stores.folder import FolderIndexStore

ON_A = Declaration((Index(type="MIN_MAX", column="a"),))
ON_B = Index(type="MIN_MAX", column="b")


@dataclass
class Clock:
    seconds: float = 1_700_000_000

    def __call__(self) -> EpochNanos:
        return EpochNanos(int(self.seconds * NANOS_PER_SECOND))


@dataclass
class World:
    """An index of three files, active, on a clock of its own."""

    objects: FaultyStore = field(
        default_factory=lambda: FaultyStore(ObstoreObjectStore(MemoryStore(), "memory:///"))
    )
    target: FakeTarget = field(default_factory=FakeTarget)
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.store = FolderIndexStore(self.objects)
        self.timing = Timing(clock=self.clock, heartbeat_seconds=60)
        for number in range(3):
            self.target.put(f"f{number}", number, number + 10)
        create(self.store, self.target, ON_A, timing=self.timing)
        refresh(self.store, self.target, timing=self.timing)
        self.target.built.clear()

    def rows(self, *columns: str) -> dict[str, tuple[object, ...]]:
        return as_rows(self.store.open(self.store.read()), *(columns or ("i1.min", "i1.max")))


@pytest.fixture
def world() -> World:
    return World()


THREE = {"f0": (0, 10), "f1": (1, 11), "f2": (2, 12)}


def test_created_index_is_empty_and_skips_nothing() -> None:
    store = FolderIndexStore(ObstoreObjectStore(MemoryStore(), "memory:///"))
    state = create(store, FakeTarget(), ON_A)
    assert (state.phase, state.exists, state.may_skip) == (IndexState.EMPTY, True, False)


def test_first_refresh_indexes_every_file(world: World) -> None:
    state = world.store.read()
    assert (state.phase, state.may_skip) == (IndexState.ACTIVE, True)
    assert world.rows() == THREE


def test_second_creation_is_refused_or_answered(world: World) -> None:
    with pytest.raises(IndexAlreadyExists):
        create(world.store, world.target, ON_A)
    before = world.store.read()
    assert create(world.store, world.target, ON_A, if_not_exists=True) == before


def test_refresh_builds_only_what_is_new_or_changed(world: World) -> None:
    world.target.put("f0", 7)
    world.target.put("f9", 9)
    del world.target.files["f1"]
    result = refresh(world.store, world.target, timing=world.timing)
    assert world.target.built == [(("i1",), ("f9", "f0"))]
    assert str(result.plan) == "INCREMENTAL: 1 new, 1 changed, 1 removed, 1 unchanged"
    assert world.rows() == {"f0": (7, 7), "f2": (2, 12), "f9": (9, 9)}


def test_refresh_without_changes_writes_no_segment_and_its_time(world: World) -> None:
    before = world.store.read()
    world.clock.seconds += 5
    result = refresh(world.store, world.target, timing=world.timing)
    assert result.state.segments == before.segments
    assert result.state.version == before.version + 1
    assert result.state.checked_at == world.clock() > result.state.refreshed_at
    assert world.target.built == []


def test_full_refresh_begins_anew(world: World) -> None:
    result = refresh(world.store, world.target, RefreshMode.FULL, timing=world.timing)
    assert (result.indexed, len(result.state.segments)) == (3, 1)
    assert world.rows() == THREE


def test_file_that_cannot_be_read_stays_unknown_and_is_tried_again(world: World) -> None:
    world.target.put("bad", 1)
    world.target.unreadable.add("bad")
    result = refresh(world.store, world.target, timing=world.timing)
    assert (result.indexed, result.left_out, "bad" in world.rows()) == (0, 1, False)
    world.target.unreadable.clear()
    assert refresh(world.store, world.target, timing=world.timing).indexed == 1


def test_refresh_that_can_index_nothing_changes_nothing(world: World) -> None:
    before = world.rows()
    world.target.unreadable.update(world.target.files)
    with pytest.raises(SnaploomError, match="none of the 3 files could be indexed") as caught:
        refresh(world.store, world.target, RefreshMode.FULL, timing=world.timing)
    assert ": it is unreadable" in str(caught.value.found)
    assert world.rows() == before
    assert world.store.read().phase is IndexState.FAILED
    assert world.store.read().may_skip


def test_other_reader_makes_auto_refresh_full_and_incremental_fail(world: World) -> None:
    world.target.settings = (("zone", "UTC"),)
    with pytest.raises(IndexNotPossible, match="zone is UTC, was not set"):
        refresh(world.store, world.target, RefreshMode.INCREMENTAL, timing=world.timing)
    result = refresh(world.store, world.target, timing=world.timing)
    assert result.plan.reasons == ("zone is UTC, was not set",)
    assert result.state.definition.fingerprint == world.target.fingerprint


def test_other_type_of_a_column_makes_a_new_index_id(world: World) -> None:
    world.target.columns["a"] = "int"
    result = refresh(world.store, world.target, timing=world.timing)
    assert result.plan.reasons == ("a is int, was bigint",)
    assert world.rows("i2.min", "i2.max") == THREE


def test_column_that_vanished_is_named(world: World) -> None:
    del world.target.columns["a"]
    before = world.store.read()
    with pytest.raises(IndexNotPossible, match="no column a"):
        refresh(world.store, world.target, timing=world.timing)
    assert world.store.read() == before


def test_rows_that_are_damaged_are_built_anew(world: World) -> None:
    (segment,) = world.store.read().segments
    world.objects.delete([f"segments/{segment.name}"])
    result = refresh(world.store, world.target, timing=world.timing)
    assert result.plan.mode is RefreshMode.FULL
    assert world.rows() == THREE


class BuildFailed(Exception):
    pass


def fail() -> None:
    raise BuildFailed("disk on fire")


def test_failed_build_changes_nothing_a_reader_sees(world: World) -> None:
    before = world.store.read()
    world.target.put("f0", 99)
    world.target.during_build = fail
    with pytest.raises(BuildFailed):
        refresh(world.store, world.target, timing=world.timing)
    state = world.store.read()
    assert (state.phase, state.message) == (IndexState.FAILED, "disk on fire")
    assert (state.segments, state.definition) == (before.segments, before.definition)
    assert state.may_skip
    assert world.rows() == THREE


def test_failed_index_is_refreshed_or_recovered(world: World) -> None:
    world.target.put("f0", 99)
    world.target.during_build = fail
    with pytest.raises(BuildFailed):
        refresh(world.store, world.target, timing=world.timing)
    world.target.during_build = lambda: None
    assert recover(world.store, timing=world.timing).phase is IndexState.ACTIVE
    refresh(world.store, world.target, timing=world.timing)
    assert world.rows()["f0"] == (99, 99)


@pytest.mark.parametrize(
    "other",
    [
        lambda w: refresh(w.store, w.target, timing=w.timing),
        lambda w: drop(w.store, timing=w.timing),
        lambda w: compact(w.store, timing=w.timing),
        lambda w: recover(w.store, timing=w.timing),
        lambda w: alter(w.store, w.target, Alteration(enabled=False), timing=w.timing),
        lambda w: alter(w.store, w.target, Alteration(add=(ON_B,)), timing=w.timing),
    ],
)
def test_operation_during_a_refresh_gets_an_error(world, other):
    world.target.put("f0", 99)
    refused: list[str] = []

    def meanwhile() -> None:
        world.target.during_build = lambda: None
        with pytest.raises(IndexBusy) as caught:
            other(world)
        refused.append(caught.value.message)
        assert world.rows() == THREE

    world.target.during_build = meanwhile
    refresh(world.store, world.target, timing=world.timing)
    assert refused == ["memory:/// is refreshing"]
    assert world.rows() == THREE | {"f0": (99, 99)}


def test_operation_that_was_taken_for_dead_commits_nothing(world: World) -> None:
    world.target.put("f0", 99)

    def meanwhile() -> None:
        world.target.during_build = lambda: None
        world.clock.seconds += 61
        refresh(world.store, world.target, timing=world.timing)

    world.target.during_build = meanwhile
    with pytest.raises(IndexBusy, match="taken for dead"):
        refresh(world.store, world.target, timing=world.timing)
    assert world.store.read().phase is IndexState.ACTIVE
    assert world.rows() == THREE | {"f0": (99, 99)}


def test_operation_beats_while_it_works(world: World) -> None:
    world.target.put("f0", 99)
    timing = replace(world.timing, heartbeat_seconds=0.01)

    def until_it_beat() -> None:
        world.clock.seconds += 1
        seen = threading.Event()
        for _ in range(1000):
            if world.store.read().heartbeat_at == world.clock():
                seen.set()
                break
            seen.wait(0.01)
        assert seen.is_set()

    world.target.during_build = until_it_beat
    assert refresh(world.store, world.target, timing=timing).state.phase is IndexState.ACTIVE


def test_adding_an_index_builds_only_its_columns(world: World) -> None:
    world.target.put("f0", 99)  # changed since: its row is not completed
    state = alter(world.store, world.target, Alteration(add=(ON_B,)), timing=world.timing)
    assert state.phase is IndexState.ACTIVE
    assert world.target.built == [(("i2",), ("f1", "f2"))]
    assert world.rows("i1.min", "i2.min") == {"f0": (0, None), "f1": (1, 1), "f2": (2, 2)}
    refresh(world.store, world.target, timing=world.timing)
    assert world.rows("i1.min", "i2.min")["f0"] == (99, 99)


def test_dropped_index_is_not_built_again_and_its_id_not_used_again(world: World) -> None:
    change = Alteration(drop=frozenset({"i1"}), add=(ON_B,))
    alter(world.store, world.target, change, timing=world.timing)
    again = Alteration(add=(Index(type="MIN_MAX", column="a"),))
    state = alter(world.store, world.target, again, timing=world.timing)
    assert [index.index_id for index in state.definition.indexes] == ["i2", "i3"]
    assert world.rows("i2.min", "i3.min") == {"f0": (0, 0), "f1": (1, 1), "f2": (2, 2)}


def test_other_parameters_make_another_index(world: World) -> None:
    sets = Alteration(add=(Index(type="VALUE_SET", column="b"),))
    alter(world.store, world.target, sets, timing=world.timing)
    change = Alteration(parameters={"i2": {"limit": "1"}}, enabled_indexes={"i2": False})
    state = alter(world.store, world.target, change, timing=world.timing)
    assert [index.index_id for index in state.definition.indexes] == ["i1", "i3"]
    assert not state.definition.indexes[1].enabled
    assert world.rows("i3.values") == {"f0": (2,), "f1": (2,), "f2": (2,)}


def test_disabled_index_skips_nothing_and_is_kept_up_to_date(world: World) -> None:
    change = Alteration(enabled=False, properties={"p": "1"}, mode=RefreshMode.FULL)
    state = alter(world.store, world.target, change, timing=world.timing)
    assert not state.may_skip
    world.target.put("f9", 9)
    refresh(world.store, world.target, timing=world.timing)
    assert "f9" in world.rows()


@pytest.mark.parametrize(
    "change", [Alteration(), Alteration(enabled=True), Alteration(parameters={"i1": {}})]
)
def test_alteration_to_what_is_already_so_commits_nothing(world: World, change: Alteration) -> None:
    before = world.store.read()
    assert alter(world.store, world.target, change) == before
    assert world.store.read().version == before.version


@pytest.mark.parametrize(
    "change",
    [
        Alteration(add=(Index(type="MIN_MAX", column="a"),)),
        Alteration(add=(Index(type="PARTITION", column="a"),)),
        Alteration(add=(Index(type="MIN_MAX", column="nothing"),)),
        Alteration(drop=frozenset({"i1"})),
        Alteration(drop=frozenset({"i8"})),
    ],
)
def test_alteration_that_cannot_be_changes_nothing(world: World, change: Alteration) -> None:
    before = world.store.read()
    with pytest.raises(SnaploomError):
        alter(world.store, world.target, change, timing=world.timing)
    assert world.store.read() == before


def test_dropped_index_is_gone_and_vacuum_removes_its_files(world: World) -> None:
    state = drop(world.store, timing=world.timing)
    assert (state.phase, state.exists, state.may_skip) == (IndexState.DELETED, False, False)
    with pytest.raises(IndexNotFound):
        refresh(world.store, world.target, timing=world.timing)
    state = vacuum(world.store, timing=world.timing)
    assert (state.exists, state.definition) == (False, None)
    assert list(world.objects.list("segments/")) == []
    again = create(world.store, world.target, ON_A, timing=world.timing)
    assert again.definition.indexes[0].index_id == "i2"


def test_vacuum_of_a_living_index_is_refused(world: World) -> None:
    with pytest.raises(IndexNotFound):
        vacuum(world.store, timing=world.timing)
    assert world.rows() == THREE


def test_owned_index_is_changed_only_by_its_owner(world: World) -> None:
    owner = "SkippingIndex/flights"
    alter(world.store, world.target, Alteration(owner=owner), timing=world.timing)
    with pytest.raises(IndexOwned, match=owner):
        drop(world.store, timing=world.timing)
    with pytest.raises(IndexOwned, match=owner):
        alter(world.store, world.target, Alteration(enabled=False), acting_for="SkippingIndex/x")
    refresh(world.store, world.target, timing=world.timing)
    assert not drop(world.store, acting_for=owner, timing=world.timing).exists
    with pytest.raises(IndexOwned, match=owner):
        vacuum(world.store, timing=world.timing)


def test_recovery_gives_up_rows_that_cannot_be_read(world: World) -> None:
    world.objects.delete([info.key for info in world.objects.list("segments/")])
    state = recover(world.store, timing=world.timing)
    assert (state.phase, state.may_skip) == (IndexState.EMPTY, False)
    assert "given up" in state.message


def test_description_counts_indexed_stale_and_missing_files(world: World) -> None:
    world.target.put("f0", 99)
    world.target.put("f9", 9)
    del world.target.files["f1"]
    description = describe(world.store, world.target.list_files(""))
    counts = (
        description.coverage.indexed,
        description.coverage.stale,
        description.coverage.missing,
        description.coverage.gone,
    )
    assert counts == (1, 1, 1, 1)
    assert [(i.definition.label, i.known, i.unknown) for i in description.indexes] == [
        ("MIN_MAX(a)", 3, 0)
    ]


def test_damaged_index_is_described_with_its_problem(world: World) -> None:
    world.objects.delete([info.key for info in world.objects.list("segments/")])
    assert "is missing" in describe(world.store).problem


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("fault", [Fault.ANSWER_LOST, Fault.REQUEST_LOST])
def test_refresh_survives_lost_answers(world: World, fault: Fault, count: int) -> None:
    world.target.put("f0", 99)
    world.objects.faults = times(count, fault, "put_if_absent", "")
    refresh(world.store, world.target, timing=world.timing)
    assert world.rows() == THREE | {"f0": (99, 99)}


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_refresh_that_is_killed_leaves_a_whole_state(tmp_path: Path, point: str) -> None:
    target = FakeTarget()
    target.put("f0", 0)
    store = folder_store(tmp_path)
    create(store, target, ON_A)
    refresh(store, target)
    target.put("f1", 1)
    process = SPAWN.Process(target=refresh_and_die, args=(tmp_path, target, point))
    process.start()
    process.join(DEADLINE)
    assert process.exitcode == -9
    is_done = POINTS.index(point) >= 3
    state = store.read()
    expected = {"f0": (0,), "f1": (1,)} if is_done else {"f0": (0,)}
    assert state.may_skip
    assert as_rows(store.open(state), "i1.min") == expected
    if not is_done:
        with pytest.raises(IndexBusy):
            recover(store)
        assert recover(store, timing=Timing(abandoned_after_seconds=0)).phase is IndexState.ACTIVE
    refresh(store, target)
    assert as_rows(store.open(store.read()), "i1.min") == {"f0": (0,), "f1": (1,)}
