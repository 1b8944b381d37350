"""AdmissionReviews for tests, and what is answered to them with a store of objects in view."""

import asyncio
import copy
import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

from support.declared.declarations import Raw

from snaploom.policy.verdicts import JudgedText, Verdict, judge
from snaploom_operator.admission.conflicts import review_context, users_of
from snaploom_operator.admission.judge import read_submission, review, review_deletion
from snaploom_operator.admission.request import (
    AdmissionRequest,
    Answer,
    answer_document,
    parse_review,
)
from snaploom_operator.objects import (
    LABEL_KIND,
    LABEL_NAME,
    LABEL_OWNER,
    LABEL_ROLE,
    LABEL_RUN,
    Ref,
)
from snaploom_operator.settings import ProtectDependants
from snaploom_operator.store.store import Store

NAMESPACE = "team"
_VERSIONS = itertools.count(1_000)


def stored(raw: Raw, *, namespace: str = NAMESPACE, generation: int = 1, **status: Any) -> Raw:
    """A declaration as it is stored, newer than everything stored before; status by keyword."""
    result = copy.deepcopy(raw)
    name = result["metadata"]["name"]
    result["metadata"] |= {
        "namespace": namespace,
        "uid": f"uid-of-{result['kind']}-{name}".lower(),
        "generation": generation,
        "resourceVersion": str(next(_VERSIONS)),
        "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
    }
    if status:
        result["status"] = {**result.get("status", {}), **status}
    return result


def key(raw: Raw, namespace: str = NAMESPACE) -> Ref:
    return Ref(raw["kind"], namespace, raw["metadata"]["name"])


def newer(raw: Raw, **metadata: Any) -> Raw:
    """The same object after a change of its metadata."""
    result = copy.deepcopy(raw)
    result["metadata"] |= {"resourceVersion": str(next(_VERSIONS)), **metadata}
    return result


def labels_of(owner: Raw, run: str, **others: str) -> dict[str, str]:
    metadata = owner["metadata"]
    return {
        LABEL_KIND: owner["kind"],
        LABEL_NAME: metadata["name"][:63],
        LABEL_OWNER: metadata["uid"],
        LABEL_RUN: run,
        **others,
    }


def config_map(owner: Raw, run: str, role: str, data: dict[str, str] | None = None) -> Raw:
    return _of_run("ConfigMap", owner, run, role, LABEL_ROLE) | {"data": data or {}}


def _of_run(kind: str, owner: Raw, run: str, role: str, label: str) -> Raw:
    metadata = {
        "name": f"{run}-{role}",
        "namespace": owner["metadata"]["namespace"],
        "uid": f"uid-of-{run}-{role}",
        "resourceVersion": str(next(_VERSIONS)),
        "labels": labels_of(owner, run, **{label: role}),
    }
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata}


def report(owner: Raw, run: str, **fields: Any) -> Raw:
    content = {
        "output": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "runId": run,
        "phase": "SUCCEEDED",
        "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": "2026-01-01T00:10:00Z",
        **fields,
    }
    return config_map(owner, run, "report", {"report.json": json.dumps(content)})


def driver_pod(owner: Raw, run: str, **status: Any) -> Raw:
    return _of_run("Pod", owner, run, "driver", "spark-role") | {"status": status}


def current_run(name: str, phase: str, started_at: str = "2026-01-01T00:00:00Z") -> Raw:
    return {"name": name, "id": name, "phase": phase, "since": started_at, "startedAt": started_at}


class VerdictsInProcess:
    """Judges where it is asked, and lets others have a turn in between."""

    def __init__(self) -> None:
        self._known: dict[JudgedText, Verdict] = {}
        self.asked: list[tuple[str, JudgedText]] = []
        """Who had what judged, in order."""

    def known(self, text: JudgedText) -> Verdict | None:
        return self._known.get(text)

    async def judged(
        self, namespace: str, texts: Iterable[JudgedText]
    ) -> Mapping[JudgedText, Verdict]:
        found = {}
        for text in texts:
            await asyncio.sleep(0)
            self.asked.append((namespace, text))
            found[text] = self._known[text] = judge(text)
        return found


class VerdictsAtOnce(VerdictsInProcess):
    """Knows every verdict already: for tests of something else, whose passes never wait."""

    def known(self, text: JudgedText) -> Verdict | None:
        return judge(text)


WARN, DENY = ProtectDependants.WARN, ProtectDependants.DENY


def a_review(new: Raw | None, old: Raw | None = None, **changes: Any) -> Raw:
    """What an API server sends; an update where both are given, a deletion without the first."""
    operation = "CREATE" if old is None else "UPDATE" if new is not None else "DELETE"
    about: Raw = new or old or {}
    request = {
        "uid": "of-this-request",
        "kind": {"group": "snaploom.io", "version": "v1alpha1", "kind": about.get("kind", "?")},
        "operation": operation,
        "name": about.get("metadata", {}).get("name", ""),
        "namespace": NAMESPACE,
        "userInfo": {"username": "somebody"},
        "object": new,
        "oldObject": old,
        "dryRun": False,
    }
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": request | changes,
    }


def a_request(new: Raw | None, old: Raw | None = None, **changes: Any) -> AdmissionRequest:
    return parse_review(json.dumps(a_review(new, old, **changes)).encode())


def store_of(raws: Iterable[Raw]) -> Store:
    """A store that has seen declarations; those that carry a UID are taken as they are."""
    store = Store()
    for raw in raws:
        store.put(raw if "uid" in raw["metadata"] else stored(raw))
    return store


def answered(
    new: Raw | None,
    existing: Iterable[Raw] = (),
    old: Raw | None = None,
    protect: ProtectDependants = WARN,
    *,
    allow_jdbc_url: bool = False,
) -> Answer:
    store = store_of(existing)
    request = a_request(new, old)
    if new is None:
        ref = Ref(request.kind.kind, request.namespace, request.name)
        return review_deletion(request, users_of(ref, store))
    submission = read_submission(request)
    if isinstance(submission, Answer):
        return submission
    around = review_context(submission.resource, store)
    return review(submission, around, protect, judge_text=judge, allow_jdbc_url=allow_jdbc_url)


def codes(answer: Answer) -> list[str]:
    """Codes of what something is refused for."""
    return [] if answer.refusal is None else [finding.code for finding in answer.refusal.findings]


def response(request: AdmissionRequest, answer: Answer) -> Raw:
    document: Raw = json.loads(json.dumps(answer_document(request, answer)))
    result: Raw = document["response"]
    return result
