"""The page of what `run.spark` may contain: lists of settings, annotations and variables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from generation.markdown import NOTE, table
from snaploom.policy.pods import ALLOWED, ANNOTATIONS, BEYOND, LABELS, PROGRAMS
from snaploom.policy.variables import FAMILIES, NAMES


def run_settings_page() -> str:
    """The page of the lists."""
    return "\n".join(
        [
            "# What `run.spark` may contain\n",
            NOTE,
            "`spec.run.spark` of an OutputDataset or a SkippingIndex may hold what is listed here. "
            "Everything else is refused with [SL182](problems.md#sl182), in a cluster and on a "
            "laptop. An administrator adds to the lists by the chart's value `allow`, "
            "`snaploom operator settings` shows them, and what is in the operator's own settings "
            "(`spark.application`) is not judged.\n",
            "## Spark settings\n",
            "The list `sparkConf`: `allow.sparkConf: [spark.plugins]`, or "
            "`--allow sparkConf=spark.plugins`. An entry that ends in `.` allows all below it. "
            "Settings of Hadoop's S3 client may name a bucket (`fs.s3a.bucket.NAME.`). "
            "`spark.executorEnv.` is held to the names of variables below.\n",
            *_settings(),
            "### Settings that are refused for a reason\n",
            table(["setting", "why"], _rows(BEYOND)),
            "## Annotations and labels of pods\n",
            "The list `annotations`, for both. Keys of your own, without a prefix and without "
            "points, such as `team`, pass.\n",
            table(
                ["annotation", "what it is"],
                [[f"`{key}`", meaning] for key, (_, meaning) in ANNOTATIONS.items()],
            ),
            f"Labels: {_names(LABELS)}.\n",
            "## Environment variables\n",
            "Every name passes but these, and those that begin like the ones with a star; a "
            "`prefix` of `envFrom` must not make one of them possible.\n",
            table(
                ["name", "why it is refused"],
                _rows({**{f"{name}*": why for name, why in FAMILIES.items()}, **NAMES}),
            ),
            "Where `envFrom` is used, the pods get those among them that need no other value as "
            "variables of their own, which count before it.\n",
            "## Other fields\n",
            table(
                ["field", "what is refused"],
                [
                    ["`image`", "what matches no pattern of the list `images`, which is `*`"],
                    ["`podTemplate.volumeMounts`", f"paths at, in or above {_names(PROGRAMS)}, "
                     "and files of `/etc` that change how programs start"],
                    ["`podTemplate.nodeSelector`", "`node-role.kubernetes.io/`"],
                    ["`podTemplate.tolerations`", "`node-role.kubernetes.io/`; no key"],
                    ["`podTemplate.priorityClassName`", "`system-*`; a quota limits others"],
                ],
            ),
            "`serviceAccountName` may name any account of the namespace: put none there that may "
            "do more than those who write declarations.\n",
        ]
    )  # fmt: skip


def _settings() -> Iterator[str]:
    for group in ALLOWED:
        yield f"### {group.title}\n"
        yield f"Allowed because {group.reason}. A value is {group.expected}.\n"
        yield f"{_names(group.keys)}\n"


def _rows(reasons: Mapping[str, str]) -> list[list[str]]:
    return [[f"`{name}`", why] for name, why in reasons.items()]


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
