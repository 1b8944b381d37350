"""Regular expressions and globs of users take time in proportion to what they are applied to."""

import re
import time
import warnings
from re import _parser

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.declared.declarations import document, parsed
from support.runner.proofscope import IS_WHOLE, WorkExceeded, within_work

from snaploom.models.fieldtransformer import Rename, TransformerSelector
from snaploom.policy.regexes import (
    MAX_NAME,
    RegexError,
    RegexInvalid,
    RegexNotApplicable,
    regex,
    size_of,
)
from snaploom.sources.files.globs import local_matches
from snaploom.sources.prefix import UriPrefix
from snaploom.sources.transformers import is_selected, renamed
from snaploom.validate.outputs import _is_below
from snaploom.validate.validator import validate

CATASTROPHIC = [
    "(a+)+$",
    "(a|a)*$",
    "(a|aa)+$",
    "(.*)*x",
    "(?:a?){50}a{50}$",
    "([a-z]+)*_$",
    "a*a*a*a*a*a*$",
]
MATCH_NOTHING = ["(a|a)*$", "a*a*a*a*a*a*$"]
LONG = "a" * 100_000 + "!"


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "([a-z]+)*_$"])
def test_python_engine_exceeds_the_work_that_others_keep(pattern):
    with pytest.raises(WorkExceeded), within_work(seconds=1):
        re.search(pattern, "a" * 60 + "!")


@pytest.mark.parametrize("pattern", CATASTROPHIC)
def test_selector_over_a_long_coordinate_is_linear(pattern):
    selectors = [TransformerSelector(coordinate_include_regex=pattern)]
    with within_work(seconds=1):
        assert is_selected(selectors, LONG, {}) == (pattern in MATCH_NOTHING)


def test_selectors_over_many_coordinates_are_linear():
    selectors = [TransformerSelector(coordinate_exclude_regex="(a+)+$")]
    with within_work(seconds=2):
        assert all(is_selected(selectors, f"{'a' * 60}!{number}", {}) for number in range(20_000))


@pytest.mark.parametrize("pattern", CATASTROPHIC)
def test_rename_of_the_longest_name_is_bounded(pattern):
    with within_work(seconds=1):
        assert renamed("a" * (MAX_NAME - 1) + "!", Rename(pattern=pattern, replacement=""))


def test_rename_that_multiplies_a_name_is_an_error():
    rename = Rename(pattern="^(.*)$", replacement="$1" * 256)
    with within_work(seconds=1), pytest.raises(RegexNotApplicable, match="more than 4096"):
        renamed("a" * 100, rename)
    with pytest.raises(RegexNotApplicable, match="reads at most 4096"):
        renamed("a" * (MAX_NAME + 1), rename)


@pytest.mark.parametrize(
    "pattern",
    [
        "((a{100}){100}){100}", r"\w{1000}", r"\w" * 512, r"(?i)\w{1,255}", r"[\W]" * 256,
        "(?:(?:x{30}){30}){30}",
        "(" * 512 + ")" * 512, "(.{1,1000}|.{1,999})" * 50, "[^\\W\\d]{300}",
    ],
)  # fmt: skip
def test_pattern_is_judged_in_bounded_time(pattern):
    with within_work(seconds=2):
        findings_of([pattern[:1024]])


def test_many_large_patterns_are_not_all_judged():
    patterns = [rf"\w{{1,255}}{number}" for number in range(256)]
    with within_work(seconds=5):
        findings = findings_of(patterns)
    assert len(findings) == 1
    assert "too large together" in findings[0].message


@pytest.mark.parametrize("pattern", [r"\W" * 511 + ")", r"[\W]" * 255 + ")", r"(?i)\w|" * 170])
def test_patterns_of_small_programs_count_by_what_there_is_to_read(pattern):
    with within_work(seconds=3):
        findings = findings_of([f"{pattern[:1020]}{number}" for number in range(256)])
    assert "too large together" in findings[-1].message


def test_message_of_a_pattern_is_short_however_long_its_classes_are():
    [finding] = findings_of([r"[\W]" * 255 + ")"])
    assert finding.message == "the regular expression is not valid: unexpected )"


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("a(?=b)", "a lookahead, which a linear engine cannot do, at character 2: use"),
        ("a(?!b)", "a negative lookahead"),
        ("(?<=a)b", "a lookbehind"),
        ("(?<!a)b", "a negative lookbehind"),
        (r"(a)\1", "a backreference, which a linear engine cannot do, at character 4: write out"),
        ("(?P<n>a)(?P=n)", "a backreference"),
        ("(?>a)", "an atomic group, which a linear engine cannot do, at character 1: write (?:"),
        ("(a)?(?(1)b|c)", "a condition"),
        ("a++", "a possessive repetition at character 3: leave out the second +"),
        ("(?x) a", "the flag x at character 1: write the pattern without blanks"),
        (r"(?a)\w", "the flag a at character 1: write [0-9A-Za-z_]"),
        ("a{1001}", "count to 1000 at most"),
        ("((a{100}){100}){100}", "nested ones multiplied, counts to 1000"),
        (r"\w{1000}", "the pattern is too large: give smaller counts"),
        (r"\q", "there is no such escape"),
        ("[z-a]", "write the earlier character first"),
        ("[ab", "a class without an end"),
        ("(a", "missing )"),
        ("*a", "no argument for repetition"),
        ("a\\", "without a character after it"),
    ],
)  # fmt: skip
def test_pattern_that_cannot_be_used_is_named_with_what_to_write(pattern, message):
    [finding] = findings_of([pattern])
    assert (finding.code, finding.path) == (
        "SL131",
        "spec.fieldSelectors[0].coordinateIncludeRegex",
    )
    assert message in f"{finding.message}: {finding.hint}"


def findings_of(patterns):
    spec = {
        "fieldSelectors": [{"coordinateIncludeRegex": pattern} for pattern in patterns],
        "metadata": {"k": "v"},
    }
    return [
        each
        for each in validate(parsed([document("MetadataApplicator", "m", spec)]))
        if each.code == "SL131"
    ]


def test_half_a_character_in_a_pattern_is_refused():
    with pytest.raises(RegexInvalid, match="half a character"):
        size_of("\ud800")


@pytest.mark.parametrize("kind", ["STRING", "ISO8601_DATE_TIME", "INTEGER"])
def test_prefix_with_many_captures_is_bounded(kind):
    prefix = UriPrefix.parse("/d/" + "".join(f"{{c{n}:{kind}}}1" for n in range(40)) + "x/")
    with within_work(seconds=1):
        assert prefix.match("/d/" + "1" * 1000 + "/f.parquet") is None


@pytest.mark.parametrize(
    ("text", "uri", "expected"),
    [
        ("/d/{a:STRING}-{b:STRING}/", "/d/x-y-z/f", {"a": "x", "b": "y-z"}),
        ("/d/{a:INTEGER}_{b:STRING}.{c:LONG}/", "/d/-7_ü.x.5/f", {"a": -7, "b": "ü.x", "c": 5}),
        ("/d (1)/{a:STRING}+{b:STRING}.", "/d (1)/p+q.r.s", {"a": "p", "b": "q"}),
    ],
)
def test_prefix_with_several_captures_in_a_name_captures_as_before(text, uri, expected):
    assert UriPrefix.parse(text).match(uri) == expected


def test_judged_pattern_is_not_kept():
    assert size_of("(a)(b)").groups == 2
    assert regex("(a)") is not regex("(a)")


def test_glob_over_local_names_is_polynomial(tmp_path):
    (tmp_path / ("a" * 200)).touch()
    with within_work(seconds=1):
        assert local_matches(f"file://{tmp_path}/{'*a' * 60}*b") == []
        assert len(local_matches(f"file://{tmp_path}/{'*a' * 60}?*")) == 1


def test_glob_of_a_source_against_a_folder_is_polynomial():
    with within_work(seconds=2):
        assert not _is_below(["*a" * 500 + "b", "*"], ["a" * 1000])


def test_time_is_linear_in_the_length_of_the_text():
    def work(length):
        found = regex("(a+)+$")
        begin = time.process_time()
        for _ in range(20):
            found.is_found_in("a" * length + "!")
        return time.process_time() - begin

    assert work(400_000) < 40 * max(work(40_000), 0.001)


# Patterns that were accepted before mean what they meant: RE2 against Python's own engine.


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
