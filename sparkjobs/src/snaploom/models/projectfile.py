"""The project file, `snaploom.yaml`: variables, and their values in each environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from annotated_types import MaxLen
from pydantic import Field, StringConstraints

from snaploom.models.base import ApiModel

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
