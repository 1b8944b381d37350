"""AdmissionReviews for tests, and what is answered to them with a store of objects in view."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from typing import Any

from support.declared.declarations import Raw
from support.operator.controllerobjects import NAMESPACE, stored

from snaploom.policy.verdicts import JudgedText, Verdict, judge
from snaploom_operator.admission.conflicts import review_context, users_of
from snaploom_operator.admission.judge import read_submission, review, review_deletion
from snaploom_operator.admission.request import (
    AdmissionRequest,
    Answer,
    answer_document,
    parse_review,
)
from snaploom_operator.objects import Ref
from snaploom_operator.settings import ProtectDependants
from snaploom_operator.store.store import Store


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
    """The answer to one request."""
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
