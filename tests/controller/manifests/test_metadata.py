import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.operator.runrequests import UID, an_output

from snaploom_operator.submit.manifests import (
    child_labels,
    child_metadata,
    label_value,
    owner_reference,
)

LABEL = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
"""What Kubernetes lets pass as the value of a label, besides its length."""


@given(st.text(max_size=300))
def test_every_text_becomes_a_valid_label(text: str) -> None:
    value = label_value(text)
    assert len(value) <= 63
    assert LABEL.fullmatch(value)


@given(st.from_regex(r"\A[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?\Z"))
def test_a_valid_label_stays_as_it_is(text: str) -> None:
    assert label_value(text) == text


def test_long_name_is_cut_where_a_label_may_end() -> None:
    assert label_value("a" * 62 + "-bcd") == "a" * 62


def test_child_belongs_to_its_owner() -> None:
    assert owner_reference(an_output()) == {
        "apiVersion": "snaploom.io/v1alpha1",
        "kind": "OutputDataset",
        "name": "orders",
        "uid": UID,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def test_child_has_labels_by_which_it_is_found() -> None:
    assert child_labels(an_output(), "run-1", "bundle") == {
        "snaploom.io/kind": "OutputDataset",
        "snaploom.io/name": "orders",
        "snaploom.io/owner-uid": UID,
        "snaploom.io/run": "run-1",
        "snaploom.io/role": "bundle",
    }


@pytest.mark.parametrize("kind", ["labels", "annotations"])
def test_nothing_of_the_owners_own_metadata_is_copied(kind: str) -> None:
    owner = an_output()
    theirs = {"argocd.argoproj.io/tracking-id": "x", "app.kubernetes.io/instance": "x"}
    metadata = owner.metadata.model_copy(update={kind: theirs})
    child = child_metadata(owner.model_copy(update={"metadata": metadata}), "child")
    assert not theirs.keys() & dict(child.get(kind, {})).keys()
