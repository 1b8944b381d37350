"""Credentials from environment variables: none that belong to somebody else than the source.

The author of a declaration chooses the server too, so that a variable which it may name is a
variable that it may send away.
"""

from __future__ import annotations

from collections.abc import Iterator

from snaploom.models.codes import make_finding
from snaploom.models.datasource import Credentials
from snaploom.models.finding import Finding
from snaploom.models.resource import Resource

OF_OTHERS = (
    "AWS_", "AZURE_", "GOOGLE_", "GCP_", "VAULT_", "SNAPLOOM_", "KUBE", "SPARK_", "HADOOP_",
    "DOCKER_", "GITHUB_", "GH_", "GITLAB_", "CI_", "SSH_", "NPM_", "PIP_", "TWINE_", "HF_",
    "OPENAI_", "ANTHROPIC_", "DATABRICKS_", "SNOWFLAKE_", "DBT_",
)  # fmt: skip
"""Prefixes of names of variables that clouds, tools and Snaploom itself read."""
OF_INDEXES = ("SNAPLOOM_OPENSEARCH_USERNAME", "SNAPLOOM_OPENSEARCH_PASSWORD")
"""Ours that hold credentials of an index's store."""


def variable_findings(
    credentials: Credentials | None, owner: Resource, path: str
) -> Iterator[Finding]:
    """A finding for every variable that belongs to a cloud, a tool, or Snaploom itself."""
    declared = None if credentials is None else credentials.from_environment
    if declared is None:
        return
    for field, name in (
        ("userVariable", declared.user_variable),
        ("passwordVariable", declared.password_variable),
    ):
        if name.upper().startswith(OF_OTHERS) and name not in OF_INDEXES:
            yield make_finding(
                "SL139",
                "this environment variable belongs to something else, and would be sent to the "
                "server of this declaration",
                resource=owner.identity,
                path=f"{path}.fromEnvironment.{field}",
                found=name,
                expected="a variable that exists only for this server, such as SHOP_DB_PASSWORD",
                hint="set a variable of its own name where the job's driver runs",
            )
