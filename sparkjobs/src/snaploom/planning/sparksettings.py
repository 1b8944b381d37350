"""Which settings of `run.spark` a resource may make, and which reach beyond its own pods.

`spark-submit` runs with the files, network and rights of the submitting process; settings of
Spark and of pods can load code, name servers, and ask other software of a cluster to act. The same
rules hold on a laptop, where somebody else's YAML is run. What an administrator writes in the
operator's own settings is not judged.
"""

from __future__ import annotations

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.models.codes import make_finding
from snaploom.models.finding import Finding, Severity
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.podtemplate import PodTemplate
from snaploom.models.run import SparkSettings
from snaploom.models.skippingindex import SkippingIndex
from snaploom.planning.podsettings import (
    PATH,
    Refusal,
    image_refusals,
    shown,
    template_refusals,
)
from snaploom.planning.sparkconf import can_be_added, conf_reason

_ASK = "ask an administrator of the operator to set it for all runs"


def refusals(spark: SparkSettings | None, allow: Allowances = NO_ALLOWANCES) -> tuple[Refusal, ...]:
    """Settings in `run.spark` of a resource that are refused."""
    if spark is None:
        return ()
    settings = sorted(spark.spark_conf.items())
    reasons = ((key, conf_reason(key, value, allow)) for key, value in settings)
    return (
        *(_of_key(key, reason) for key, reason in reasons if reason),
        *image_refusals(spark.image, allow),
        *template_refusals(spark.pod_template or PodTemplate(), allow),
    )


def _of_key(key: str, reason: str) -> Refusal:
    listed = f"sparkConf={shown(key)}" if can_be_added(key) else ""
    return Refusal(f"{PATH}.sparkConf", shown(key), reason, listed)


def spark_findings(
    resource: OutputDataset | SkippingIndex, allow: Allowances = NO_ALLOWANCES
) -> tuple[Finding, ...]:
    """An error for every setting of `run.spark` that a resource may not make."""
    return tuple(
        make_finding(
            "SL182",
            f"{refused.found}: {refused.reason}",
            resource=resource.identity,
            path=refused.path,
            found=refused.found,
            expected="settings that are harmless by themselves, or that an administrator added",
            hint=hint_of(refused),
            severity=Severity.ERROR,
        )
        for refused in refusals(resource.spec.run.spark, allow)
    )


def hint_of(refused: Refusal) -> str:
    """The fix for a refused setting."""
    if not refused.listed:
        return f"leave it out, or {_ASK}"
    name, _, entry = refused.listed.partition("=")
    return (
        f"leave it out, or have '{entry}' added to the list '{name}' "
        f"(chart value allow.{name}, or --allow {refused.listed})"
    )
