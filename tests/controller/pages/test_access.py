"""A request whose token the API server does not know has no user, and learns what to send."""

from __future__ import annotations

import pytest
from support.cluster.cluster import Cluster

from snaploom_operator.cluster.client import open_cluster
from snaploom_operator.errors import NotAuthenticated
from snaploom_operator.serve.pages import LONGEST_TOKEN, Access


@pytest.mark.parametrize(
    ("token", "found"),
    [
        ("", "none"),
        ("x" * (LONGEST_TOKEN + 1), f"a token of {LONGEST_TOKEN + 1:,} characters"),
        ("not-a-token", "one that is invalid, or has ended"),
    ],
)
async def test_a_token_of_nobody_is_not_authenticated(
    control_plane: Cluster, token: str, found: str
) -> None:
    async with open_cluster(control_plane.kubeconfig) as cluster:
        with pytest.raises(NotAuthenticated) as refused:
            await Access(cluster).user(token)
    assert refused.value.found == found
    assert not token or token not in str(refused.value)
