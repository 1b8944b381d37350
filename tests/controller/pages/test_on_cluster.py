"""Pages of a real API server: users see their namespaces only, and nobody changes anything."""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from support.cluster.cluster import Cluster
from support.operator.pagesprocess import (
    PageAnswer,
    PagesProcess,
    declare,
    set_status,
    user_of,
)
from support.operator.webhooks import HOST, install
from support.servers.certificates import Authority
from support.site.statuses import STATUS

pytestmark = pytest.mark.plugged


@dataclass(frozen=True)
class Team:
    """A namespace with an output, and the token of a user who may list what is there."""

    namespace: str
    token: str

    @property
    def page(self) -> str:
        return f"/outputs/{self.namespace}/wide.html"


@pytest.fixture(scope="module")
def pages(
    control_plane: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PagesProcess]:
    folder = tmp_path_factory.mktemp("pages") / "process"
    with PagesProcess(folder, control_plane.kubeconfig).running() as process:
        yield process


def team(cluster: Cluster, name: str) -> Team:
    namespace = cluster.create_namespace(name)
    declare(cluster, namespace)
    return Team(namespace, user_of(cluster, namespace, "reader"))


@pytest.fixture(scope="module")
def ours(control_plane: Cluster) -> Iterator[Team]:
    found = team(control_plane, "ours")
    yield found
    control_plane.delete_namespace(found.namespace)


@pytest.fixture(scope="module")
def theirs(control_plane: Cluster) -> Iterator[Team]:
    found = team(control_plane, "theirs")
    yield found
    control_plane.delete_namespace(found.namespace)


def is_one_sentence(answer: PageAnswer) -> bool:
    return answer.text.endswith(".\n") and answer.text.count("\n") == 1


def test_a_user_sees_the_outputs_of_their_namespace_only(pages, ours, theirs):
    pages.until(lambda: ours.page[1:] in pages.asked("/", ours.token).text)
    shown = pages.asked("/", ours.token)
    assert shown.status == 200
    assert f"{ours.namespace}/wide" in shown.text
    assert theirs.namespace not in shown.text
    assert pages.asked(ours.page, ours.token).status == 200
    assert pages.asked(theirs.page, theirs.token).status == 200


def test_what_is_hidden_is_answered_as_what_does_not_exist(pages, ours, theirs):
    hidden = pages.asked(theirs.page, ours.token)
    missing = pages.asked(f"/outputs/{ours.namespace}/nothing.html", ours.token)
    assert (hidden.status, missing.status) == (404, 404)
    assert hidden.text == missing.text
    assert is_one_sentence(hidden)


def test_a_page_has_what_the_operator_wrote(pages: PagesProcess, ours: Team) -> None:
    pages.until(lambda: pages.asked(ours.page, ours.token).status == 200)
    shown = pages.asked(ours.page, ours.token)
    for text in ("1,500 rows", "Published", "customer-id", "80%", "12", "prices", "ods-wide-1"):
        assert text in shown.text
    assert "&lt;b&gt;all is published&lt;/b&gt;" in shown.text
    assert "The output folder is not read" in shown.text
    assert shown.headers["Cache-Control"] == "no-store"


def test_a_change_of_the_status_gives_another_version(control_plane, pages, ours):
    pages.until(lambda: pages.asked(ours.page, ours.token).status == 200)
    before = pages.asked(ours.page, ours.token, "HEAD")
    set_status(control_plane, ours.namespace, {"snapshotCount": 1313})
    pages.until(lambda: "1,313" in pages.asked(ours.page, ours.token).text)
    after = pages.asked(ours.page, ours.token, "HEAD")
    assert after.headers["X-Snaploom-Version"] != before.headers["X-Snaploom-Version"]
    assert after.text == ""
    set_status(control_plane, ours.namespace, STATUS)


@pytest.mark.parametrize("token", ["", "garbage", "e30.e30.e30", "x" * 8_001])
def test_a_request_without_a_valid_token_is_refused_with_a_sentence(pages, ours, token):
    for path in ("/", ours.page, "/nothing"):
        answer = pages.asked(path, token)
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert is_one_sentence(answer)
        assert ours.namespace not in answer.text


def test_the_token_of_a_deleted_user_is_refused(control_plane, pages, ours):
    token = user_of(control_plane, ours.namespace, "leaver")
    control_plane.kubectl("delete", "serviceaccount", "leaver", "--namespace", ours.namespace)
    pages.until(lambda: pages.asked("/", token).status == 401)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_what_would_write_is_refused(pages: PagesProcess, ours: Team, method: str) -> None:
    for path in ("/", ours.page):
        answer = pages.asked(path, ours.token, method)
        assert answer.status == 405
        assert answer.headers["Allow"] == "GET, HEAD"
        assert is_one_sentence(answer)


def test_a_user_who_may_list_outputs_and_no_sources_sees_nothing(control_plane, pages, ours):
    token = user_of(control_plane, ours.namespace, "halfway", "outputdatasets")
    assert ours.namespace not in pages.asked("/", token).text
    assert pages.asked(ours.page, token).status == 404


def test_a_user_who_may_list_everywhere_sees_all_namespaces(control_plane, pages, ours, theirs):
    kubectl, name = control_plane.kubectl, f"all-{ours.namespace}"
    kubectl("create", "serviceaccount", "all", "--namespace", ours.namespace)
    kinds = "outputdatasets.snaploom.io,datasources.snaploom.io,skippingindexes.snaploom.io"
    kubectl("create", "clusterrole", name, "--verb=list", f"--resource={kinds}")
    account = f"--serviceaccount={ours.namespace}:all"
    kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", account)
    token = kubectl("create", "token", "all", "--namespace", ours.namespace).strip()
    try:
        shown = pages.asked("/", token).text
        assert f"{ours.namespace}/wide" in shown
        assert f"{theirs.namespace}/wide" in shown
    finally:
        kubectl("delete", "clusterrole,clusterrolebinding", name)


def test_an_open_page_asks_the_api_server_seldom(pages: PagesProcess, theirs: Team) -> None:
    for _ in range(20):
        assert pages.asked(theirs.page, theirs.token).status == 200
    before = reviews(pages)
    for _ in range(20):
        pages.asked(theirs.page, theirs.token, "HEAD")
    # Of one user a TokenReview each 10 seconds, and four reviews of rights each 30.
    assert reviews(pages) - before <= 5 * 4


def reviews(pages: PagesProcess) -> float:
    lines = [line for line in pages.figures().splitlines() if "pages_reviews_total{" in line]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def test_no_token_stands_in_the_log(pages: PagesProcess, ours: Team) -> None:
    pages.asked("/", ours.token)
    pages.asked("/", "not-a-token-but-a-secret")
    assert ours.token not in pages.log_text()
    assert "not-a-token-but-a-secret" not in pages.log_text()


def test_pages_are_served_over_tls_where_a_certificate_is_given(control_plane, ours, tmp_path):
    authority = Authority(tmp_path, "authority")
    install(authority.issue(HOST), tmp_path / "certificate")
    trusted = ssl.create_default_context(cafile=authority.certificate)
    certificate = {"certificateFolder": str(tmp_path / "certificate")}
    pages = PagesProcess(tmp_path / "pages", control_plane.kubeconfig, **certificate)
    with pages.running() as process:
        assert process.asked(ours.page, ours.token, trusted=trusted).status == 200
        assert process.end() == 0
