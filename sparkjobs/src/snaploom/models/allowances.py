"""Allowances: an administrator's additions to the lists of settings that declarations may use.

Every list of the gate (formats, options, functions, settings, annotations, images) has a built-in
part, which holds what was judged harmless, and an added part, which is one list here. The operator
has them from its settings, a laptop from `--allow LIST=ENTRY`; a job from its environment, where
its operator always writes them, so that no other variable can stand in for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated

from annotated_types import MaxLen
from pydantic import StringConstraints, ValidationError

from snaploom.models.base import ApiModel

ALLOW_VARIABLE = "SNAPLOOM_ALLOW"
"""Environment variable of a job with its allowances, as JSON."""

Entries = Annotated[
    tuple[Annotated[str, StringConstraints(min_length=1, max_length=512)], ...], MaxLen(256)
]


class AllowanceInvalid(ValueError):
    """An allowance that names no list, or holds no entry; the message is written for people."""


class Allowances(ApiModel):
    """Entries that are allowed beyond the built-in lists."""

    formats: Entries = ()
    """File formats that `hdfsLike.format` may name, as Spark's data sources call themselves; `h2`,
    for H2's database files; and classes of JDBC drivers, for `jdbc.driverClass`."""
    options: Entries = ()
    """Options that `hdfsLike.formatOptions` may hold, as `FORMAT.OPTION`."""
    functions: Entries = ()
    """Functions that SQL may call, by name: Spark's own that are refused, or those of users."""
    spark_conf: Entries = ()
    """Keys that `run.spark.sparkConf` may hold; one that ends in `.` allows all below it."""
    annotations: Entries = ()
    """Annotations and prefixed labels of pods, by key; one that ends in `/` allows all of that
    prefix."""
    images: Entries = ("*",)
    """Images that `run.spark.image` may name, as patterns where `*` stands for any text; only `*`
    allows all of them."""
    endpoints: Entries = ()
    """Servers of indexes and keys that declarations may name, as `HOST` or `HOST:PORT`, where `*`
    stands for any text; empty, or with `*` among them: any but the pod itself. The pod itself
    (`localhost`) may be named where an entry names it, metadata services never."""

    @classmethod
    def of(cls, texts: Iterable[str]) -> Allowances:
        """Allowances from `LIST=ENTRY` texts, as a command line gives them.

        Raises:
            AllowanceInvalid: a text names no list, or no entry.
        """
        names = {field.alias or name: name for name, field in cls.model_fields.items()}
        found: dict[str, list[str]] = {}
        for text in texts:
            name, _, entry = text.partition("=")
            if name not in names or not entry:
                lists = ", ".join(sorted(names))
                raise AllowanceInvalid(
                    f"found {text!r}, expected LIST=ENTRY, where LIST is one of {lists}"
                )
            found.setdefault(name, []).append(entry)
        return cls.parse({name: list(dict.fromkeys(entries)) for name, entries in found.items()})

    def joined(self, other: Allowances) -> Allowances:
        """Union of two allowances; a list that one of them lacks is the other's."""
        given = {
            name: tuple(
                dict.fromkeys(
                    entry
                    for one in (self, other)
                    if name in one.model_fields_set
                    for entry in getattr(one, name)
                )
            )
            for name in self.model_fields_set | other.model_fields_set
        }
        return Allowances(**given)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Allowances:
        """The allowances that `ALLOW_VARIABLE` holds; none where it is not set.

        Raises:
            AllowanceInvalid: it holds something else.
        """
        text = environment.get(ALLOW_VARIABLE, "")
        if not text:
            return NO_ALLOWANCES
        try:
            return cls.parse(json.loads(text))
        except (json.JSONDecodeError, ValidationError) as error:
            raise AllowanceInvalid(
                f"{ALLOW_VARIABLE} does not hold a list of allowances"
            ) from error


NO_ALLOWANCES = Allowances()
"""Only the built-in lists."""
