"""The page of environment variables has those that the product reads, and no other."""

import re

from support.documentation.pages import DOCS, REPOSITORY

PAGE = DOCS / "operating" / "environment-variables.md"
NAME = r"SNAPLOOM_[A-Z_]+[A-Z]"
"""A prefix of names, such as that of a run's secrets, ends with a line."""


def test_page_lists_the_variables_of_the_product_in_order() -> None:
    sources = [
        file.read_text("utf-8")
        for part in ("sparkjobs/src", "operator/src")
        for file in (REPOSITORY / part).rglob("*.py")
    ]
    read = {name for text in sources for name in re.findall(rf'"({NAME})"', text)}
    listed = re.findall(rf"^\| `({NAME})` \|", PAGE.read_text("utf-8"), re.MULTILINE)
    assert listed == sorted(read)
