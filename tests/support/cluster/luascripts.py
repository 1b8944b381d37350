"""Lua as Argo CD runs it, and with less: of the libraries only what a script asks for by name."""

from __future__ import annotations

from typing import Any

import lupa.lua51 as lua

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
