"""Our own regular expressions, over texts of tenants, folders and servers, are linear too."""

import re

import pytest
from support.hostile.ownpatterns import adversarial_texts, patterns_in_use
from support.runner.budget import within_work

LENGTH = 40_000
"""A quadratic pattern takes two seconds and more over so many characters, a linear one a tenth
of one at most."""
OURS = sorted(patterns_in_use().items(), key=lambda use: (use[0].pattern, use[0].flags))


def test_patterns_are_found():
    assert len(OURS) > 100


def use(pattern, method, text):
    if method == "sub":
        pattern.sub("", text)
    elif method == "finditer":
        list(pattern.finditer(text))
    else:
        getattr(pattern, method)(text)


@pytest.mark.parametrize(
    ("pattern", "methods"), [pytest.param(*each, id=each[0].pattern[:60]) for each in OURS]
)
def test_own_pattern_is_linear(pattern, methods):
    for text in adversarial_texts(pattern.pattern, pattern.flags, LENGTH):
        for method in methods:
            with within_work(seconds=1.0):
                use(pattern, method, text)


@pytest.mark.parametrize("pattern", ["(a+)+$", r"\s*x", "(?:a*)*b"])
def test_slow_pattern_is_found_out(pattern):
    with pytest.raises(AssertionError):
        test_own_pattern_is_linear(re.compile(pattern), {"search"})
