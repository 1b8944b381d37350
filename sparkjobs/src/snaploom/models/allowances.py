"""Additions of administrators to allow lists, and the project file `snaploom.yaml`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import MaxLen
from pydantic import Field, StringConstraints, ValidationError

from snaploom.models.base import ApiModel

# Allowances: an administrator's additions to the lists of settings that declarations may use.

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
        """Allowances from `LIST=ENTRY` texts, as a command line gives them."""
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
        """The allowances that `ALLOW_VARIABLE` holds; none where it is not set."""
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


# The project file, `snaploom.yaml`: variables, and their values in each environment.

PROJECT_FILE = "snaploom.yaml"
"""Name of the project file."""

VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_-]*$"
VariableName = Annotated[
    str, StringConstraints(min_length=1, max_length=63, pattern=VARIABLE_PATTERN)
]
EnvironmentName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"),
]
LONGEST_VALUE = 2048
"""Characters of a value: as many as a URI may have."""
VariableValue = Annotated[
    str,
    StringConstraints(max_length=LONGEST_VALUE, pattern=r"^([^$\x00-\x1f]|\$+[^$(\x00-\x1f])*\$*$"),
]
"""One line of text, without variables in it."""
VariableValues = Annotated[Mapping[VariableName, VariableValue], MaxLen(256)]


class Environment(ApiModel):
    """The settings of one environment that differ."""

    variables: VariableValues = Field(default_factory=dict)
    """Values that hold in this environment instead of the project's."""


class ProjectFile(ApiModel):
    """Variables of the declarations in a folder and below, and environments that set them."""

    variables: VariableValues = Field(default_factory=dict)
    """Values that hold where an environment sets no other."""
    environments: Annotated[Mapping[EnvironmentName, Environment], MaxLen(64)] = Field(
        default_factory=dict
    )
    """The environments, by name."""

    def values(self, environment: str | None) -> dict[str, str]:
        """The variables that an environment has; None for those of the project only."""
        own = self.environments.get(environment or "", Environment()).variables
        return {**self.variables, **own}

    def environments_of(self, variable: str) -> tuple[str, ...]:
        """Environments that set a variable."""
        return tuple(name for name, each in self.environments.items() if variable in each.variables)


@dataclass(frozen=True)
class VariableChoice:
    """The caller's choice: `--env` and `--set`, or `env` and `variables` of `load`."""

    environment: str | None = None
    """An environment of the project file."""
    values: Mapping[str, str] = field(default_factory=dict)
    """Values that go before those of the project file."""


NO_CHOICE = VariableChoice()
