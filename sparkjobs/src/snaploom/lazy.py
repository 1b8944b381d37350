"""The one place where modules are imported when they are first needed, by dotted name.

Spark takes seconds to import and to start; `snaploom --help` and `plan --offline` must not wait
for it. Everything else in the library imports at the top, so that the layers stay checkable.
"""

from __future__ import annotations

from importlib import import_module

READ = "snaploom.reader:read"
WEAVE = "snaploom.jobs.outputs:weave_outputs"
PREVIEW = "snaploom.jobs.outputs:preview"
INDEX = "snaploom.jobs.indexing:carry_out"
FAILURES = "snaploom.cli.failures:tell_failure"


def resolve(name: str) -> object:
    """The object that `package.module:attribute` names."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
