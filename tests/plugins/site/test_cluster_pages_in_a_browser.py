"""Pages of a cluster in a real Chromium, behind what adds a token to each request."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
from support.cluster.cluster import Cluster
from support.operator.pagesprocess import PagesProcess, declare, set_status, user_of
from support.site.chromium import PHONE, Browser
from support.site.statuses import STATUS

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Viewed:
    """A namespace with an output, and what a request of one of its readers has."""

    pages: PagesProcess
    namespace: str
    headers: Mapping[str, str]

    @property
    def address(self) -> str:
        return self.pages.address(f"/outputs/{self.namespace}/wide.html")


@pytest.fixture(scope="module")
def viewed(control_plane: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewed]:
    namespace = control_plane.create_namespace("viewed")
    declare(control_plane, namespace)
    token = user_of(control_plane, namespace, "reader")
    folder = tmp_path_factory.mktemp("pages") / "process"
    with PagesProcess(folder, control_plane.kubeconfig).running() as process:
        yield Viewed(process, namespace, {"Authorization": f"Bearer {token}"})
    control_plane.delete_namespace(namespace)


def test_the_list_leads_to_an_output_and_back(browser: Browser, viewed: Viewed) -> None:
    with browser.page(viewed.pages.address(), headers=viewed.headers) as page:
        page.click("a[href$='wide.html']")
        browser.wait_for_next("Page.loadEventFired", page.session)
        assert page.value("document.querySelector('h1').textContent").startswith(
            f"{viewed.namespace}/wide"
        )
        page.click(".home a")
        browser.wait_for_next("Page.loadEventFired", page.session)
        assert page.value("document.querySelector('h1').textContent") == "Outputs"


def test_a_page_draws_the_planned_tree_and_loads_nothing(browser: Browser, viewed: Viewed) -> None:
    with browser.page(viewed.address, headers=viewed.headers) as page:
        assert page.complaints() == []
        assert page.requests() == [viewed.address]
        cards = "[...document.querySelectorAll('#join-drawing .node')].map(n => n.textContent)"
        assert len(page.value(cards)) == 2
        page.hover(".node[href='#source-1'] rect.card")
        shown = page.value("document.getElementById('tip').textContent")
        assert shown == "address · hdfsLike · 80% of rows matched"


def test_an_open_page_follows_the_status(control_plane, browser, viewed):
    with browser.page(viewed.address, headers=viewed.headers) as page:
        set_status(control_plane, viewed.namespace, {"snapshotCount": 77})
        browser.wait_for_next("Page.loadEventFired", page.session)
        assert "77" in page.value("document.querySelector('.tiles').textContent")
        set_status(control_plane, viewed.namespace, STATUS)


def test_a_phone_shows_all_without_scrolling_sideways(browser: Browser, viewed: Viewed) -> None:
    with browser.page(viewed.address, PHONE, dark=True, headers=viewed.headers) as page:
        assert page.value("document.documentElement.scrollWidth <= innerWidth")


def test_without_a_token_a_browser_gets_a_sentence(browser: Browser, viewed: Viewed) -> None:
    with browser.page(viewed.address) as page:
        assert page.value("document.body.textContent").startswith("Not authenticated: ")
