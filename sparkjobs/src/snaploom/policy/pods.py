"""Spark settings and pod templates that a resource may declare, and all allow lists."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from posixpath import normpath

from pydantic import ValidationError

from snaploom.models.allowances import ALLOW_VARIABLE, NO_ALLOWANCES, AllowanceInvalid, Allowances
from snaploom.models.findings import Finding, InvalidDeclarations, Severity, make_finding
from snaploom.models.outputdataset import OutputDataset
from snaploom.models.run import PodTemplate, SparkSettings
from snaploom.models.skippingindex import SkippingIndex
from snaploom.policy.addresses import OF_ADMINISTRATOR, refusal_of_host
from snaploom.policy.fileformats import BUILT_IN
from snaploom.policy.sqlfunctions import FUNCTIONS
from snaploom.policy.variables import prefix_reason, variable_reason

# Keys of `sparkConf`, each judged once by what Spark does with it: by them it loads classes, reads
# files, opens ports and shapes pods. What `sparkconf.toml` does not list is refused, unless an
# administrator adds it. Most values are numbers, sizes, times and words.

KEY = re.compile(r"spark(\.[A-Za-z0-9_-]+)+")
"""Keys reach `spark-submit` as `key=value`: one with `=` would be another key there."""

_SUBSTITUTED = re.compile(r"\$\{(env|system|spark|hadoopconf):|\$\{spark\.")
"""Spark replaces these in values by variables of the submitter's process."""

_EXECUTOR_VARIABLE = "spark.executorEnv."
_S3A = "spark.hadoop.fs.s3a."
_BUCKET = re.compile(r"bucket\.[a-z0-9][a-z0-9-]{1,62}\.")

_JAVA = re.compile(
    r"(\s*("
    r"-XX:[+-](Use(G1|Parallel|Serial|Z|Shenandoah)GC|UseStringDeduplication|UseCompressedOops"
    r"|UseContainerSupport|AlwaysPreTouch|ParallelRefProcEnabled|DisableExplicitGC"
    r"|ExitOnOutOfMemoryError|CrashOnOutOfMemoryError|ZGenerational|UseNUMA|UseLargePages)"
    r"|-XX:[A-Z][A-Za-z0-9]*=\d+(\.\d+)?[kmgtKMGT]?"
    r"|-Xss\d+[kmgKMG]"
    r"|-Duser\.timezone=[A-Za-z0-9_+/-]+"
    r"|-Dfile\.encoding=UTF-8"
    r")(?=\s|$))*\s*"
)
_PROVIDER = (
    r"(com\.amazonaws\.auth\.(EnvironmentVariable|WebIdentityToken)CredentialsProvider"
    r"|org\.apache\.hadoop\.fs\.s3a\.((Anonymous|Simple|Temporary)AWSCredentialsProvider"
    r"|auth\.IAMInstanceCredentialsProvider)"
    r"|software\.amazon\.awssdk\.auth\.credentials\.(Anonymous|Container|EnvironmentVariable"
    r"|InstanceProfile|WebIdentityTokenFile)CredentialsProvider)"
)
"""Those that come with Hadoop and Amazon's client, and start no program: a profile may name one."""
_ENDPOINT = re.compile(r"(?:https?://)?(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?/?")

_FORMS = {
    "catalog": re.compile(r"hive|in-memory"),
    "codecs": re.compile(r"lz4|lzf|snappy|zstd"),
    "endpoint": _ENDPOINT,
    "java": _JAVA,
    "plain": re.compile(r"[-+]?\w*+(\.\d\w*+)?", re.ASCII),
    "providers": re.compile(rf"\A\s*+{_PROVIDER}(\s*+,\s*+{_PROVIDER})*+\s*+"),
    "region": re.compile(r"[a-z0-9-]{1,64}"),
    "serializers": re.compile(r"org\.apache\.spark\.serializer\.(Kryo|Java)Serializer"),
    "text": re.compile(r".*", re.DOTALL),
    "words": re.compile(r"[A-Za-z0-9_, -]*"),
    "zone": re.compile(r"[A-Za-z0-9_+:-][A-Za-z0-9_+/:-]{0,63}"),
}
"""Forms of values by the names that the list has for them."""


@dataclass(frozen=True)
class Allowed:
    """Settings that were judged together."""

    title: str
    reason: str
    """Reason why they are harmless."""
    keys: tuple[str, ...]
    """Their names; one that ends in `.` stands for all below it."""
    form: re.Pattern[str] = _FORMS["plain"]
    expected: str = "a number, a size, a time or a word"
    """The same for people."""


_LISTED = tomllib.loads(files(__package__).joinpath("sparkconf.toml").read_text("utf-8"))

OWN_FIELD: Mapping[str, str] = _LISTED["own_field"]
"""Settings that are fields under `run.spark`: the field would win without a word."""
ALLOWED = tuple(
    Allowed(
        **{
            **group,
            "keys": tuple(group["keys"].split()),
            "form": _FORMS[group.get("form", "plain")],
        }
    )
    for group in _LISTED["allowed"]
)
"""Every setting that is allowed without the list `sparkConf` of an administrator."""
BEYOND: Mapping[str, str] = _LISTED["beyond"]
"""Prefixes of keys that are refused for a known reason; other keys have not been judged."""

_GROUP_OF: Mapping[str, Allowed] = {key: group for group in ALLOWED for key in group.keys}
_UNJUDGED = "its effect has not been judged"


def conf_reason(key: str, value: str, allow: Allowances = NO_ALLOWANCES) -> str:
    """Return why a setting is refused, without its value; empty if it is allowed."""
    if not KEY.fullmatch(key):
        return "keys begin with 'spark.' and have letters, digits, '_', '-' and points"
    if "\0" in value:
        return "the value has a NUL character, which no program can be given"
    if _SUBSTITUTED.search(value):
        return "the value names a variable, which would be read where the job is submitted"
    if key in OWN_FIELD:
        return f"it has a field of its own: run.spark.{OWN_FIELD[key]}"
    if is_listed(key, allow.spark_conf, "."):
        return ""
    if key.startswith(_EXECUTOR_VARIABLE):
        return variable_reason(key.removeprefix(_EXECUTOR_VARIABLE))
    group = _GROUP_OF.get(_common(key))
    if group is None:
        return next((reason for start, reason in BEYOND.items() if _below(key, start)), _UNJUDGED)
    if not group.form.fullmatch(value) or (group.form is _ENDPOINT and _is_metadata_service(value)):
        return f"its value has another form than expected: {group.expected}"
    return ""


def can_be_added(key: str) -> bool:
    """Whether an administrator can allow a key by the list `sparkConf`."""
    return KEY.fullmatch(key) is not None and key not in OWN_FIELD


def is_listed(name: str, entries: tuple[str, ...], separator: str) -> bool:
    """Whether a name is one of these, or below one that ends in the separator."""
    return any(
        name == entry or (entry.endswith(separator) and name.startswith(entry)) for entry in entries
    )


def _common(key: str) -> str:
    if not key.startswith(_S3A):
        return key
    return _S3A + _BUCKET.sub("", key.removeprefix(_S3A), count=1)


def _below(key: str, start: str) -> bool:
    """Whether it is one of these, or below one: `spark.jars` goes with `spark.jars.packages`."""
    return key == start or key.startswith(start.rstrip(".") + ".")


def _is_metadata_service(endpoint: str) -> bool:
    found = _ENDPOINT.fullmatch(endpoint)
    assert found is not None
    port = int((found[2] or ":0")[1:])
    return bool(refusal_of_host(found[1], port, OF_ADMINISTRATOR))


# The contents that `run.spark.podTemplate` may have, besides fields that the models lack.

PATH = "spec.run.spark"
BUNDLE_FOLDER = "/etc/snaploom/bundle"
"""Path at which the driver finds the Bundle."""
OUR_VOLUMES = "snaploom-"
"""Prefixes of the names of Snaploom's own volumes."""
OUR_LABELS = ("snaploom.io/", "sparkoperator.k8s.io/", "spark-", "spark.operator/")
"""Prefixes of the labels by which pods are found."""
_LONGEST_SHOWN = 120

_ANYTHING = re.compile(r".*", re.DOTALL)
_FLAG = re.compile(r"true|false")
ANNOTATIONS: Mapping[str, tuple[re.Pattern[str], str]] = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": (
        _FLAG, "whether the run's pod may be moved when a node is emptied"),
    "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": (
        re.compile(r"[A-Za-z0-9_,.-]*"), "the same, for some of its volumes"),
    "karpenter.sh/do-not-disrupt": (_FLAG, "whether the run's pod may be moved"),
    "kubectl.kubernetes.io/default-container": (_ANYTHING, "what kubectl shows first"),
    "kubectl.kubernetes.io/default-logs-container": (_ANYTHING, "what kubectl shows first"),
    "prometheus.io/path": (re.compile(r"/[A-Za-z0-9_./-]*"), "where the pod's own figures are"),
    "prometheus.io/port": (re.compile(r"[0-9]{1,5}"), "where the pod's own figures are"),
    "prometheus.io/scheme": (re.compile(r"https?"), "where the pod's own figures are"),
    "prometheus.io/scrape": (_FLAG, "whether the pod's own figures are asked for"),
}  # fmt: skip
"""Annotations allowed without an administrator, with the form of their values and a description."""
LABELS = (
    "app.kubernetes.io/component",
    "app.kubernetes.io/name",
    "app.kubernetes.io/part-of",
    "app.kubernetes.io/version",
)
"""Labels with a prefix that are allowed without an administrator: names for people."""
_OWN_KEY = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?")
"""Keys that are the user's own: without a prefix, by Kubernetes' convention, and without points,
since runtimes have annotations such as `io.kubernetes.cri-o.Devices`."""

PROGRAMS = (
    "/bin", "/boot", "/dev", "/lib", "/lib32", "/lib64", "/libx32", "/opt/snaploom", "/opt/spark",
    "/proc", "/root", "/run/secrets", "/sbin", "/sys", "/usr", "/var/run/secrets",
)  # fmt: skip
"""Folders of programs, devices and tokens: a volume there would be other programs."""
_WRITTEN = "/opt/spark/work-dir"
"""The one folder below these that is the job's."""
_SETTINGS = re.compile(
    r"/etc(/(alternatives|bash[^/]*|environment|group|hosts|java[^/]*|krb5[^/]*|ld\.so[^/]*"
    r"|nsswitch\.conf|pam\.d|passwd|profile[^/]*|python[^/]*|resolv\.conf|shells|ssl/openssl\.cnf)"
    r"(/.*)?)?"
)
"""Files of `/etc` that change which programs run."""
_ROLES = "node-role.kubernetes.io/"


@dataclass(frozen=True)
class Refusal:
    """One setting that a resource may not make."""

    path: str
    found: str
    """The setting: a key, a name or a path, never a value."""
    reason: str
    listed: str = ""
    """The list of an administrator that could allow it, as `LIST=ENTRY`; empty where none can."""


def shown(text: str) -> str:
    """A name as a message has it."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


def image_refusals(image: str | None, allow: Allowances) -> Iterator[Refusal]:
    """Reasons to refuse the image that a resource names."""
    if image is None or any(_matches(image, pattern) for pattern in allow.images):
        return
    reason = "only images of the list 'images' may be named"
    yield Refusal(f"{PATH}.image", shown(image), reason, f"images={shown(image)}")


def _matches(image: str, pattern: str) -> bool:
    """Whether an image is one of a pattern, where `*` stands for any text."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), image) is not None


def template_refusals(template: PodTemplate, allow: Allowances) -> Iterator[Refusal]:
    """Reasons to refuse the pods that a resource requests."""
    yield from _volumes(template)
    yield from _variables(template)
    yield from _annotations(template, allow)
    yield from _labels(template, allow)
    yield from _nodes(template)


def _volumes(template: PodTemplate) -> Iterator[Refusal]:
    path = f"{PATH}.podTemplate"
    for volume in template.volumes:
        if volume.name.startswith(OUR_VOLUMES):
            yield Refusal(f"{path}.volumes", volume.name, "names like this are the operator's own")
    for mount in template.volume_mounts:
        reason = _mount_reason(normal_path(mount.mount_path))
        if reason:
            yield Refusal(f"{path}.volumeMounts", shown(mount.mount_path), reason)


def _mount_reason(path: str) -> str:
    if path == "/" or _is_within(path, BUNDLE_FOLDER) or _is_within(BUNDLE_FOLDER, path):
        return "the operator mounts the declarations there"
    if _is_within(path, _WRITTEN):
        return ""
    if any(_is_within(path, each) or _is_within(each, path) for each in PROGRAMS):
        return "programs of the image are there, or tokens"
    return "files there change how programs start" if _SETTINGS.fullmatch(path) else ""


def _variables(template: PodTemplate) -> Iterator[Refusal]:
    path = f"{PATH}.podTemplate"
    for variable in template.env:
        reason = variable_reason(variable.name)
        if reason:
            yield Refusal(f"{path}.env", shown(variable.name), reason)
    for number, source in enumerate(template.env_from):
        reason = prefix_reason(source.prefix or "")
        if reason:
            found = shown(source.prefix or "")
            yield Refusal(f"{path}.envFrom[{number}].prefix", found, f"with some key {reason}")


def _annotations(template: PodTemplate, allow: Allowances) -> Iterator[Refusal]:
    for key, value in sorted(template.annotations.items()):
        if _OWN_KEY.fullmatch(key) or is_listed(key, allow.annotations, "/"):
            continue
        known = ANNOTATIONS.get(key)
        if known is None or not known[0].fullmatch(value):
            reason = "other software of the cluster may act on it"
            if known is not None:
                reason = "its value has another form than expected"
            yield Refusal(
                f"{PATH}.podTemplate.annotations", shown(key), reason, f"annotations={shown(key)}"
            )


def _labels(template: PodTemplate, allow: Allowances) -> Iterator[Refusal]:
    path = f"{PATH}.podTemplate.labels"
    for key in sorted(template.labels):
        if key.startswith(OUR_LABELS):
            yield Refusal(path, shown(key), "pods are found by labels like this")
        elif not (
            key in LABELS or _OWN_KEY.fullmatch(key) or is_listed(key, allow.annotations, "/")
        ):
            reason = "other software of the cluster may act on it"
            yield Refusal(path, shown(key), reason, f"annotations={shown(key)}")


def _nodes(template: PodTemplate) -> Iterator[Refusal]:
    path = f"{PATH}.podTemplate"
    for key in sorted(template.node_selector):
        if key.startswith(_ROLES):
            yield Refusal(f"{path}.nodeSelector", shown(key), "such nodes are the cluster's own")
    for number, toleration in enumerate(template.tolerations):
        if toleration.key is None or toleration.key.startswith(_ROLES):
            reason = "it leads to nodes that are the cluster's own"
            found = shown(toleration.key or "every taint")
            yield Refusal(f"{path}.tolerations[{number}]", found, reason)
    name = template.priority_class_name or ""
    if name.startswith("system-"):
        reason = "the cluster's own pods would make way for it"
        yield Refusal(f"{path}.priorityClassName", shown(name), reason)


def normal_path(path: str) -> str:
    """A folder as the kernel knows it: `/a/../b/` and `//b` are `/b`."""
    return f"/{normpath(path).strip('/')}"


def _is_within(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder}/")


# Settings of `run.spark` that a resource may make, and those that reach beyond its own pods.

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
        resource.finding(
            "SL182",
            refused.path,
            f"{refused.found}: {refused.reason}",
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


# The built-in part of each list that `Allowances` adds to, by the names that people see.

BUILT_IN_LISTS: Mapping[str, tuple[str, ...]] = {
    "formats": tuple(sorted(BUILT_IN)),
    "options": tuple(
        sorted(f"{each.name}.{option}" for each in BUILT_IN.values() for option in each.options)
    ),
    "functions": tuple(sorted(name for name, each in FUNCTIONS.items() if not each.refused)),
    "sparkConf": tuple(sorted(key for group in ALLOWED for key in group.keys)),
    "annotations": tuple(sorted(ANNOTATIONS)),
    "images": (),
    "endpoints": (),
}
"""Entries allowed without an administrator, by the name of the list."""


# Additions to the built-in allowlists, from the environment and options of a process.


def allowances_of(environment: Mapping[str, str], texts: Iterable[str] = ()) -> Allowances:
    """The allowances of the environment and of `--allow` together."""
    given = f"the value of {ALLOW_VARIABLE}"
    try:
        allowed = Allowances.from_environment(environment)
        for text in texts:
            given = text
            allowed = allowed.joined(Allowances.of([text]))
    except (AllowanceInvalid, ValidationError) as error:
        what = str(error) if isinstance(error, AllowanceInvalid) else "a shorter entry"
        finding = make_finding(
            "SL191",
            "this allows nothing",
            path="--allow",
            found=given,
            expected=what,
            hint="write LIST=ENTRY, as in the message of the refusal",
        )
        raise InvalidDeclarations([finding]) from None
    return allowed
