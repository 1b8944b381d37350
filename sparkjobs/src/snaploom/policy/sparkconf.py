"""Keys that `run.spark.sparkConf` may hold, and the form of their values.

Spark's configuration loads classes, reads and writes files, opens ports, names servers, changes how
SQL is read, and shapes pods. So keys are allowed by name: each was judged once, by what Spark 4.3
does with it. What `sparkconf.toml` does not list is refused until somebody judges it, or an
administrator adds it to the list `sparkConf`. Values are judged as well: most are numbers, sizes,
times and words, which no class name, path or address is.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from snaploom.models.allowances import NO_ALLOWANCES, Allowances
from snaploom.policy.addresses import OF_ADMINISTRATOR, refusal_of_host
from snaploom.policy.variables import variable_reason

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
