"""The browser of the tests of pages; it is started when a test first asks for it."""

from collections.abc import Iterator

import pytest
from support.site.chromium import Browser, chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A Chromium for all tests of a process."""
    with chromium() as started:
        yield started
