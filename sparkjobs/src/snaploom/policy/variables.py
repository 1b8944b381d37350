"""Environment variables of jobs: settings of a job, and those no declaration may set."""

from collections.abc import Mapping

# Environment variables that configure reports of a job; the submitter sets most of them.

DEBUG_VARIABLE = "SNAPLOOM_DEBUG"
"""Shows Spark's log, and where an internal error happened."""
LOG_FORMAT_VARIABLE = "SNAPLOOM_LOG_FORMAT"
"""Form of a job's lines: `json`, one object a line, or `text`, the form without it."""
URL_VARIABLE = "SNAPLOOM_LINEAGE_URL"
"""Destination of lineage events: the address of a server, or `file:///PATH`; none are emitted
without."""
KEY_VARIABLE = "SNAPLOOM_LINEAGE_API_KEY"
"""The key that the server wants, if it wants one."""
NAMESPACE_VARIABLE = "SNAPLOOM_LINEAGE_NAMESPACE"
"""The namespace of our jobs there."""


# Environment variables that a declaration may not give to the pods of a run.

FAMILIES: Mapping[str, str] = {
    "BASH": "the shell that starts the job runs it",
    "GLIBC_": "it changes how programs are loaded",
    "HADOOP_": "it leads to other settings and classes of Hadoop",
    "HIVE_": "it leads to other settings of Hive",
    "JAVA_": "it starts Java with anything, agents included",
    "JDK_": "it starts Java with anything, agents included",
    "KUBERNETES_": "it leads the job to another API server",
    "LD_": "it loads other code into every program",
    "OPENSSL_": "it loads other code into every program",
    "PY4J_": "it is how Python and Java speak to each other",
    "PYSPARK_": "it is how Python and Java speak to each other",
    "PYTHON": "it loads other code into Python",
    "SNAPLOOM_": "only the operator decides what a job may do",
    "SPARK_": "it changes how Spark is started",
    "YARN_": "it leads to other settings of Hadoop",
}

NAMES: Mapping[str, str] = {
    "ARROW_LIBHDFS_DIR": "it loads other code into Python",
    "AWS_CONFIG_FILE": "a profile in that file can start a program",
    "AWS_SHARED_CREDENTIALS_FILE": "a profile in that file can start a program",
    "CLASSPATH": "it loads classes from anywhere",
    "ENV": "the shell that starts the job runs it",
    "GCONV_PATH": "it loads other code into every program",
    "GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES": "credentials could start a program",
    "HOME": "settings of other programs, and the programs that they start, are found there",
    "HADOOP_USER_NAME": "it is another identity",
    "IBM_JAVA_OPTIONS": "it starts Java with anything, agents included",
    "IFS": "it changes how the shell reads",
    "KRB5_CONFIG": "it leads to another realm, and can load code",
    "LIBHDFS_OPTS": "it starts Java with anything, agents included",
    "LOCPATH": "it loads other files into every program",
    "OPENJ9_JAVA_OPTIONS": "it starts Java with anything, agents included",
    "PATH": "it leads to other programs",
    "PS4": "a shell that shows its commands runs it",
    "SHELLOPTS": "the shell that starts the job obeys it",
    "_JAVA_OPTIONS": "it starts Java with anything, agents included",
}

PINNED: Mapping[str, str] = {
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "BASH_ENV": "",
    "CLASSPATH": "",
    "JAVA_TOOL_OPTIONS": "",
    "JDK_JAVA_OPTIONS": "",
    "LD_AUDIT": "",
    "LD_LIBRARY_PATH": "",
    "LD_PRELOAD": "",
    "LIBHDFS_OPTS": "",
    "PS4": "+ ",
    "PYTHONHOME": "",
    "PYTHONINSPECT": "",
    "PYTHONPATH": "",
    "PYTHONSTARTUP": "",
    "PYTHONWARNINGS": "",
    "SNAPLOOM_LINEAGE_URL": "",
    "SPARK_DIST_CLASSPATH": "",
    "SPARK_LAUNCHER_OPTS": "",
    "SPARK_SUBMIT_OPTS": "",
    "_JAVA_OPTIONS": "",
}
"""Variables that are set explicitly where `envFrom` could bring them, since the webhook and the
operator do not see the keys of the object. The values set have the effect of absence."""

_HARMLESS = ("SNAPLOOM_DEBUG", "SNAPLOOM_OPENSEARCH_PASSWORD", "SNAPLOOM_OPENSEARCH_USERNAME")
"""Members of a family that are the user's."""


def variable_reason(name: str) -> str:
    """Return why a variable is refused; empty where it is allowed."""
    upper = name.upper()
    if upper in _HARMLESS:
        return ""
    if upper in NAMES:
        return NAMES[upper]
    return next((reason for start, reason in FAMILIES.items() if upper.startswith(start)), "")


def prefix_reason(prefix: str) -> str:
    """Return why an object's variables may not begin like that; empty if they may.

    The keys are not known, so that it counts what a prefix could become: `S` with the key
    `PARK_HOME` is `SPARK_HOME`.
    """
    upper = prefix.upper()
    if not upper:
        return ""
    own = variable_reason(prefix)
    if own:
        return own
    refused = {**FAMILIES, **{name: NAMES[name] for name in NAMES if name not in PINNED}}
    return next((reason for name, reason in refused.items() if name.startswith(upper)), "")
