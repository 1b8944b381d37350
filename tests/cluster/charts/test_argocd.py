"""What Argo CD shows of our kinds and offers for them, by its own Lua, for every state."""

import copy
from typing import Any

import lupa.lua51 as lua
import pytest
import yaml
from support.cluster.argocd import State, states
from support.cluster.chart import CHART, Raw

from snaploom.models.kinds import KIND_BY_NAME
from snaploom_operator.conditions import Reason

CLOCK = "2026-11-21T20:00:00Z"
"""What `os.date` returns."""


def run_script(script: str, stored: dict[str, Any]) -> Any:
    """What a script returns for a resource.

    Nothing but `obj` and `require("os").date` is to be had; Argo CD also opens the base and table
    libraries, on which our scripts do not rely.

    Raises:
        lua.LuaError: the script fails, or uses something else.
    """
    runtime = lua.LuaRuntime(register_builtins=False, register_eval=False)
    load = runtime.eval(
        "function(script, obj, date)"
        "  local os = {date = date}"
        "  local function require(name) if name == 'os' then return os end error(name) end"
        "  return setfenv(assert(loadstring(script)), {obj = obj, require = require})"
        " end"
    )
    dated: list[str] = []

    def date(form: str) -> str:
        dated.append(form)
        return CLOCK

    result = load(script, runtime.table_from(stored, recursive=True), date)()
    assert all(form.startswith("!") for form in dated), "a time without a zone"
    return plain(result)


def plain(value: Any) -> Any:
    """A Lua value as Python's; an empty table is an empty dict."""
    if lua.lua_type(value) != "table":
        return value
    keys = list(value.keys())
    if keys and keys == list(range(1, len(keys) + 1)):
        return [plain(value[key]) for key in keys]
    return {key: plain(value[key]) for key in keys}


SETTINGS: Raw = yaml.safe_load((CHART / "argocd" / "argocd-cm.yaml").read_text("utf-8"))["data"]


STATES = states()
RUNNABLE = ("OutputDataset", "SkippingIndex")


def actions(kind: str) -> Raw:
    found: Raw = yaml.safe_load(SETTINGS[f"resource.customizations.actions.snaploom.io_{kind}"])
    return found


def perform(kind: str, action: str, resource: Raw) -> Any:
    (script,) = (
        each["action.lua"] for each in actions(kind)["definitions"] if each["name"] == action
    )
    return run_script(script, copy.deepcopy(resource))


def offered(resource: Raw) -> set[str]:
    found = run_script(actions(resource["kind"])["discovery.lua"], resource)
    return {name for name, action in found.items() if not action["disabled"]}


@pytest.mark.parametrize("state", STATES, ids=str)
def test_health_of_every_state(state: State) -> None:
    script = SETTINGS[f"resource.customizations.health.snaploom.io_{state.kind}"]
    assert run_script(script, state.resource) == state.health


@pytest.mark.parametrize("kind", KIND_BY_NAME)
def test_every_kind_has_a_health_script(kind: str) -> None:
    assert f"resource.customizations.health.snaploom.io_{kind}" in SETTINGS
    assert {state.health["status"] for state in STATES if state.kind == kind} >= {
        "Healthy", "Degraded", "Progressing",
    }  # fmt: skip


def test_states_cover_every_reason_of_ready() -> None:
    reasons = list(Reason)
    about_ready = set(reasons[: reasons.index(Reason.DISABLED) + 1])
    seen = {state.conditions["Ready"][1] for state in STATES if "Ready" in state.conditions}
    assert about_ready - seen == set()


def test_scripts_use_no_library() -> None:
    with pytest.raises(lua.LuaError, match="nil value"):
        run_script("return string.format('%s', 1)", {})
    with pytest.raises(lua.LuaError, match="io"):
        run_script("return require('io')", {})


@pytest.mark.parametrize("kind", KIND_BY_NAME)
def test_kinds_with_runs_have_actions(kind: str) -> None:
    assert (f"resource.customizations.actions.snaploom.io_{kind}" in SETTINGS) == (kind in RUNNABLE)


@pytest.mark.parametrize("kind", RUNNABLE)
def test_every_action_on_offer_is_defined(kind: str) -> None:
    defined = {each["name"] for each in actions(kind)["definitions"]}
    assert set(run_script(actions(kind)["discovery.lua"], bare(kind))) == defined


def bare(kind: str, **metadata: Any) -> Raw:
    return {"kind": kind, "metadata": {"name": "flights", **metadata}, "spec": {}}


@pytest.mark.parametrize(
    ("kind", "action"), [("OutputDataset", "run"), ("SkippingIndex", "refresh")]
)
def test_asking_for_a_run_sets_a_new_token_and_nothing_else(kind: str, action: str) -> None:
    before = bare(kind, annotations={"snaploom.io/run": "before", "team": "data"})
    after = perform(kind, action, before)
    assert after["metadata"].pop("annotations") == {"snaploom.io/run": CLOCK, "team": "data"}
    before["metadata"].pop("annotations")
    assert after == before
    assert perform(kind, action, bare(kind))["metadata"]["annotations"] == {
        "snaploom.io/run": CLOCK
    }


@pytest.mark.parametrize("kind", RUNNABLE)
def test_pause_and_resume_offer_each_other(kind: str) -> None:
    running = bare(kind)
    paused = perform(kind, "pause", running)
    resumed = perform(kind, "resume", paused)
    assert paused["metadata"]["annotations"] == {"snaploom.io/paused": "true"}
    assert resumed["metadata"]["annotations"] == {"snaploom.io/paused": "false"}
    for state, choice in ((running, "pause"), (paused, "resume"), (resumed, "pause")):
        assert offered(state) & {"pause", "resume"} == {choice}
    assert offered(paused) == {"resume"}
    assert offered(running | {"spec": {"run": {"suspend": True}}}) == {"pause"}
