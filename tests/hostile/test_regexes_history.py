"""Patterns that were accepted before mean what they meant: RE2 against Python's own engine."""

import re
import warnings
from re import _parser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.runner.proofscope import IS_WHOLE

from snaploom.policy.regexes import RegexError, regex

CHARACTERS = "abcdeXYZ019_.:-# []{}^$\\äöΣß日٣½ \n\t\x85"
ATOMS = st.one_of(
    st.sampled_from([".", "^", "$", r"\A", r"\Z", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\.",
                     r"\:", r"\x41", r"\u00e4", r"\101", r"\0", r"\n", r"\t", r"\-", r"\ ",
                     "{", "}", "]", "a{x}", "id", "_", "ä", "Σ", r"\N{GREEK SMALL LETTER SIGMA}",
                     "(?#why)"]),
    st.sampled_from("abcXYZ019_:-# äß日"),
)  # fmt: skip
MEMBERS = st.sampled_from(
    ["a", "z", "0", "_", "^", "-", "[", "|", "&&", "~~", "||", ":", r"\]", r"\\", r"\d", r"\D",
     r"\w", r"\W", r"\s", r"\S", r"\b", "a-f", "A-Z", "0-9", r"\x30-\x39", "ä-ö", "[:alpha:", ".",
     "$"]
)  # fmt: skip
CLASSES = st.builds(
    lambda hat, first, members: f"[{hat}{first}{''.join(members)}]",
    st.sampled_from(["", "^"]), st.sampled_from(["", "]", "-"]),
    st.lists(MEMBERS, min_size=1, max_size=4),
)  # fmt: skip
REPEATS = st.sampled_from(
    ["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{,2}", "{1,}", "{02,3}?", "{,}"]
)


def _groups(inner, repeated=lambda body, repeat: repeat):
    opening = st.sampled_from(["(", "(?:", "(?i:", "(?s:", "(?m:", "(?u:"])
    several = st.lists(inner, min_size=1, max_size=3).map("".join)
    choice = st.lists(several, min_size=1, max_size=3).map("|".join)
    return st.builds(
        lambda start, body, repeat: f"{start}{body}){repeated(body, repeat)}",
        opening, choice, REPEATS,
    )  # fmt: skip


def _groups_of_something(inner):
    """Groups whose repetitions repeat something: engines differ in how often nothing repeats."""
    return _groups(inner, lambda body, repeat: repeat if _least_width(body) else "")


def _least_width(pattern):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return _parser.parse(pattern).getwidth()[0]
    except re.error:
        return 0


ITEMS = st.builds(lambda atom, repeat: atom + repeat, st.one_of(ATOMS, CLASSES), REPEATS)


def patterns(groups):
    return st.builds(
        lambda flags, items: flags + "".join(items),
        st.sampled_from(["", "", "(?i)", "(?m)", "(?s)", "(?im)"]),
        st.lists(st.recursive(ITEMS, groups, max_leaves=6), min_size=1, max_size=4),
    )


TEXTS = st.lists(st.sampled_from(CHARACTERS), max_size=12).map("".join)


def of_python(pattern):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            return re.compile(pattern)
        except re.error:
            return None


@settings(max_examples=20_000 if IS_WHOLE else 500)
@given(pattern=patterns(_groups), text=TEXTS)
@example(pattern="[[:alpha:]]", text="a]")
@example(pattern="a{,2}$", text="aa")
@example(pattern=r"^[^\W\d_]+$", text="größe")
@example(pattern=r"\w+\s\S", text="größe x")
def test_what_python_found_is_found(pattern, text):
    python = of_python(pattern)
    # Before a final line break Python's `$` matches too, which is documented as a difference.
    if python is None or text.endswith("\n"):
        return
    assert regex(pattern).is_found_in(text) == (python.search(text) is not None)


@settings(max_examples=20_000 if IS_WHOLE else 500)
@given(pattern=patterns(_groups_of_something), text=TEXTS)
@example(pattern="x*", text="abxd")
@example(pattern="(a)|(b)", text="ab")
def test_what_python_replaced_is_replaced(pattern, text):
    python = of_python(pattern)
    if python is None or text.endswith("\n") or _may_be_empty_before_more(python, text):
        return
    expected = python.sub(lambda match: f"<{match[0]}>", text)
    assert regex(pattern).replaced(text, "<$0>") == expected


def _may_be_empty_before_more(python, text):
    """Whether Python matches twice at one place, first nothing and then something."""
    starts = [match.start() for match in python.finditer(text)]
    return len(starts) != len(set(starts))


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        (r"\bid\b", ["id", "id2", "a id", "my:id"]),
        (r"^(?:cust|customer)_(?:id|no)$", ["cust_id", "customer_no", "cust_name"]),
        (r"(?i)date$", ["OrderDate", "order_date", "dates"]),
        (r"^list:", ["list:a", "a:list:b"]),
    ],
)
def test_ordinary_patterns_mean_the_same(pattern, names):
    assert [regex(pattern).is_found_in(n) for n in names] == [
        bool(re.search(pattern, n)) for n in names
    ]


def test_edges_of_words_that_are_not_ascii_are_an_error_not_a_guess():
    assert regex(r"\bid\b").is_found_in("id–2")
    with pytest.raises(RegexError, match=r"has 'é'; write \(\?:\^\|\\W\)"):
        regex(r"\bid\b").is_found_in("idé")
