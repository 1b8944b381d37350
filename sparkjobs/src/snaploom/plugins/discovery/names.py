"""Likeness of names of columns and tables: words, abbreviations, singular and plural.

English and German forms are known. A likeness is a number from 0 (nothing in common) to 1 (the
same name); what follows from it is decided in `relationships`.
"""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

ID_WORDS = frozenset({
    "id", "ids", "nr", "no", "num", "number", "nummer", "key", "code", "cd", "kennung", "kuerzel",
    "schluessel", "schl", "sk", "fk", "pk", "bk", "uuid", "guid", "ref", "kz", "ident",
    "identifier", "oid", "rid", "idx", "nbr", "rowid", "seq", "wid", "dwid", "sleutel", "cle",
    "clave", "llave", "chave", "chiave",
})  # fmt: skip
"""Words that stand for "identifies a row"."""
TABLE_WORDS = frozenset({
    "dim", "fact", "fct", "tbl", "table", "tab", "stg", "raw", "src", "master", "stamm", "list",
    "data", "daten", "stammdaten", "ref", "export", "extract", "dump", "full", "v", "vw",
    "dimension", "lkp", "lookup", "mart", "dwh", "dwd", "dws", "d", "f", "t", "w", "fakt", "feit",
    "fait", "fatto", "fato", "hechos",
})  # fmt: skip
"""Words around the name of a table that are not part of it."""
STAGED = frozenset({"stg", "raw", "src", "export", "extract", "dump"})
"""Those of them that a copy has."""
GENERIC = frozenset({
    "name", "type", "typ", "status", "state", "date", "datum", "time", "zeit", "description",
    "beschreibung", "bezeichnung", "title", "titel", "value", "wert", "amount", "betrag", "count",
    "quantity", "qty", "menge", "price", "preis", "comment", "note", "text", "label", "version",
    "position", "pos", "line", "sort", "order", "rank", "level", "year", "jahr", "month", "monat",
    "day", "tag", "hour", "created", "updated", "active", "flag", "kind", "category", "email",
    "tipo", "estado", "nombre", "fecha", "nivel", "statut", "libelle", "niveau", "nom", "nome",
})  # fmt: skip
"""Words that occur in tables that have nothing to do with each other."""
NUMERIC = frozenset({
    "order", "line", "position", "pos", "level", "rank", "version", "year", "month", "day", "hour",
    "week", "quarter", "count", "quantity", "qty", "menge", "value", "amount", "price", "age",
    "size", "jahr", "monat", "tag", "anzahl", "stueck", "seq", "sequence", "number", "total",
    "duration",
    "score", "points", "weight", "height", "width", "length", "capacity", "seats", "minutes",
})  # fmt: skip
"""Words of columns that hold a number of something, though a table may be called so."""
SELF_WORDS = frozenset({
    "parent", "manager", "mgr", "supervisor", "boss", "reports", "superior", "predecessor",
    "previous", "prev", "next", "vorgesetzter", "vorgesetzte", "uebergeordnet", "uebergeordnete",
    "oberkategorie", "vorgaenger", "leiter", "chef", "eltern", "referrer", "referred", "replaces",
    "prerequisite", "upper", "parentcategory", "head", "reportsto", "padre", "pai", "jefe",
    "responsable",
})  # fmt: skip
"""Words of columns that refer to another row of their own table."""
PERSON_ROLES = frozenset({
    "author", "reporter", "assignee", "assigned", "owner", "creator", "created", "lead", "reviewer",
    "reviewed", "approver", "approved", "editor", "edited", "updated", "modified", "changed",
    "submitter", "submitted", "sender", "recipient", "receiver", "agent", "rep", "representative",
    "seller", "salesperson", "buyer", "requester", "requested", "requestor", "manager", "mgr",
    "boss", "superior", "vorgesetzter", "vorgesetzte", "reports", "reportsto",
    "supervisor", "teacher", "instructor", "advisor", "coach", "operator", "handler", "responsible",
    "inviter", "invitee", "follower", "followee", "host", "guest", "closed", "deleted", "verified",
    "bearbeiter", "betreuer", "verkaeufer", "leiter", "ersteller", "erfasser", "sachbearbeiter",
    "vertreter", "verantwortlicher", "ansprechpartner", "fahrer", "driver", "organizer", "contact",
    "scorer", "assist", "captain", "friend",
})  # fmt: skip
"""Words of columns that refer to a person by role, and not by the table's name."""
PERSON_TABLES = frozenset({
    "user", "employee", "staff", "person", "people", "member", "agent", "mitarbeiter", "benutzer",
    "personal", "worker", "personnel", "angestellter", "anwender", "nutzer", "emp", "persons",
    "player", "athlete", "colleague", "associate", "empleado", "employe", "medewerker",
    "dipendente",
})  # fmt: skip
"""Words of tables of persons, in the singular and as they are written."""
ROLES = frozenset({
    "from", "to", "origin", "original", "destination", "dest", "source", "target", "start", "end",
    "first", "last", "prev", "previous", "next", "old", "new", "current", "primary", "secondary",
    "main", "default", "preferred", "final", "home", "away", "bill", "billing", "billed", "ship",
    "shipping", "shipped", "sold", "delivery", "departure", "arrival", "pickup", "dropoff",
    "refunded", "returned", "return", "alternate", "init", "initial", "upstream", "downstream",
    "via", "winner", "loser", "winning", "losing", "visitor", "visiting", "von", "nach", "ziel",
    "quelle", "haupt", "rechnungs", "liefer", "versand", "abhol", "alt", "neu",
})  # fmt: skip
"""Words beside the name of a table that distinguish several roles of it."""
COUNTERS = frozenset({"num", "number", "no", "nr", "nbr", "anzahl"})
"""Words that count what follows them, as in `number_of_stores`, and identify at the end."""
GIVEN = COUNTERS | {"code", "cd", "seq"}
"""Words of numbers that people give, where another one counts the rows."""
ORDINALS = frozenset({
    "line", "position", "pos", "version", "year", "season", "month", "week", "day", "quarter",
    "period", "round", "stint", "lap", "sequence", "seq", "row", "jahr", "monat", "tag", "zeile",
    "hour",
})  # fmt: skip
"""Words of whole numbers that may be a part of a key, beside a reference."""
DAYS = frozenset({
    "date", "day", "dt", "datum", "tag", "fecha", "dia", "jour", "data", "time", "zeit", "tijd",
    "tiempo", "tid",
})  # fmt: skip
"""Words of references to a calendar, whatever it is called."""
AGGREGATED = frozenset({
    "agg", "aggregate", "aggregated", "sum", "sums", "summary", "total", "totals", "rollup",
    "resumen",
})  # fmt: skip
"""Words of tables that hold sums of another one."""
_MEASURES = frozenset({
    *COUNTERS, *NUMERIC, *ID_WORDS, "max", "min", "avg", "mean", "sum", "n", "is", "has", "of",
    "maximum", "minimum", "average",
})  # fmt: skip
"""Words beside a noun that make it a number of something, or a question."""
COMPOUND_ENDINGS = ("nummer", "schluessel", "kennung", "kuerzel", "number", "code", "uuid", "guid",
                    "key", "nr", "id", "no")  # fmt: skip
"""The endings of compounds such as `kundennr` or `orderkey`."""
_NO_COMPOUNDS = frozenset({
    "paid", "laid", "void", "avoid", "grid", "raid", "acid", "arid", "solid", "valid",
    "invalid", "rapid", "fluid", "hybrid", "liquid", "humid", "druid", "android", "amid", "unpaid",
    "prepaid", "aid", "bid", "casino", "piano", "volcano", "monkey",
    "turkey", "hockey", "whiskey", "kidney", "jersey",
})  # fmt: skip
"""Words that end like a compound, and are none."""

_WORD = re.compile(r"ID(?=[a-z]{2})|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_FOLDED = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue",
                         "ß": "ss", "é": "e", "è": "e", "á": "a", "ñ": "n", "ç": "c"})  # fmt: skip
_VOWELS = frozenset("aeiouy")


@lru_cache(maxsize=4096)
def words_of(name: str) -> tuple[str, ...]:
    """The words of a name in small letters: `OrderItem_id` has order, item and id."""
    return tuple(word.lower() for word in _WORD.findall(name.translate(_FOLDED)))


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """A word without endings of plural and case: customers and customer, Kunden and Kunde."""
    if word.endswith("ss"):
        return word
    one = _singular(word)
    if one != word:
        return stem(one)
    if word.endswith("se") and len(word) > 4:  # warehouse as warehouses, whatever that of statuses
        return stem(f"{word}s")
    for ending in ("en", "er", "e", "n"):
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word.removesuffix(ending)
    return word


def _singular(word: str) -> str:
    for ending, instead in _PLURALS:
        if word.endswith(ending) and len(word) > len(ending) + 2:
            return word.removesuffix(ending) + instead
    return word


_PLURALS = (
    ("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("ses", "s"), ("s", ""),
)  # fmt: skip
"""Endings of English plurals, with those of the singular."""


@dataclass(frozen=True)
class ColumnWords:
    """The name of a column, taken apart."""

    whole: tuple[str, ...]
    """All words, without the prefix of its table."""
    base: tuple[str, ...]
    """Those that do not stand for "identifies a row"."""
    has_id: bool
    """Whether one of the others does."""


@lru_cache(maxsize=8192)
def column_words(name: str, prefix: str = "") -> ColumnWords:
    """A column's name, taken apart.

    `prefix` is a word that all columns of its table begin with, as `l` of `l_orderkey`.
    """
    words = words_of(name)
    if prefix and len(words) > 1 and words[0] == prefix:
        words = words[1:]
    counts = len(words) > 1 and words[0] in COUNTERS and (words[1] == "of" or is_plural(words[-1]))
    base = [
        word for place, word in enumerate(words)
        if counts or not (
            (word in ID_WORDS and not (word == "ref" and 0 < place < len(words) - 1))
            # the A of ward_id_a, which all columns of a design may have
            or (len(word) == 1 and words[place - 1] in ID_WORDS and place)
        )
    ]  # fmt: skip
    has_id = len(base) < len(words)
    if not has_id:
        split = [_split(word) for word in base]
        has_id = any(ended for _, ended in split)
        base = [word for word, _ in split if word]
    return ColumnWords(words, tuple(base), has_id)


@lru_cache(maxsize=1024)
def nouns(columns: tuple[str, ...], prefix: str = "") -> Mapping[str, tuple[str, bool]]:
    """Names of columns in several roles without these: node of `init_node` beside `term_node`.

    A role is the one word in which names differ: in front, behind a word for a key, or a letter or
    a number behind. Words that measure something are none. The second value is whether one of the
    words is known as a role. `prefix` is as of `column_words`.
    """
    alike: dict[tuple[str, bool], dict[str, str]] = defaultdict(dict)
    for name in columns:
        words = column_words(name, prefix).whole or ("",)
        options = [(words[0], words[1:], False)]
        if len(words) == 1:  # fnode beside tnode
            options = [(words[0][0], (words[0][1:],), False)] if len(words[0]) > _SHORTEST else []
        elif len(words[-1]) == 1 or words[-1].isdigit() or words[-2] in ID_WORDS:
            options.append((words[-1], words[:-1], True))
        for role, rest, is_behind in options:
            base = [word for word in rest if word.isalpha() and len(word) > 1]
            if role not in _MEASURES and not ID_WORDS.issuperset(base):
                alike["_".join(rest), is_behind].setdefault(role, name)
    found: dict[str, tuple[str, bool]] = {}
    for (noun, _), names in alike.items():
        is_known = any(role in ROLES or len(role) == 1 or role.isdigit() for role in names)
        for name in names.values() if len(names) > 1 else ():
            found.setdefault(name, (noun, is_known))
    return found


_IN_ROLE = 0.95
"""Likeness of the whole name of a key beside a role: gender_code_id of codes with a code_id."""
_LONGEST_SHORT = 5
"""Letters of an abbreviation: what begins with a longer word is a compound with it."""
_SHORTEST = 3
"""Letters of a name of one word, of which the first one may be a role."""


def is_plural(word: str) -> bool:
    """Whether a word, or the last one of a name, is a plural by its ending."""
    word = word.lower()
    return word.endswith("s") and not word.endswith(("ss", "us", "is"))


def _split(word: str) -> tuple[str, bool]:
    """A word without the ending of a compound, and whether it has one."""
    if word in _NO_COMPOUNDS:
        return word, False
    for ending in COMPOUND_ENDINGS:
        least = 2 if ending == "id" else 3  # cgid of caregivers
        if word.endswith(ending) and len(word) >= len(ending) + least:
            return word.removesuffix(ending), True
    return word, False


@lru_cache(maxsize=4096)
def table_words(name: str) -> tuple[str, ...]:
    """The words of a table's name that are not `dim`, `tbl` and the like."""
    words = words_of(name)
    kept = tuple(word for word in words if word not in TABLE_WORDS and not word.isdigit())
    return kept or words


@lru_cache(maxsize=1024)
def common_prefix(columns: tuple[str, ...]) -> str:
    """The word that most columns of a table begin with, as `l` of `l_orderkey`; or nothing."""
    firsts = [words[0] for name in columns if len(words := words_of(name)) > 1 and "_" in name]
    if len(columns) < 2 or not firsts:
        return ""
    first = max(sorted(set(firsts)), key=firsts.count)
    if len(columns) == 2 and len(first) > 3:  # customer_id and customer_name share a word
        return ""
    if first in ID_WORDS and not any(ID_WORDS.intersection(words_of(c)[1:]) for c in columns):
        return ""  # id_customer beside id_store, where cd_demo_sk has a word for a key besides
    return first if firsts.count(first) >= 0.8 * len(columns) else ""


@lru_cache(maxsize=65536)
def word_likeness(one: str, other: str) -> float:
    """Return the likeness of two words: 1 for the same stem, less for an abbreviation, else 0."""
    a, b = sorted((stem(one), stem(other)), key=len)
    short, long = sorted((one, other), key=len)
    if a == b or (a[:-1] == b[:-1] and {a[-1:], b[-1:]} == {"i", "y"}):  # movie and movies
        return 1.0
    if len(a) >= 3 and b.startswith(a):
        if not long.startswith(_singular(short)):  # state and status
            return 0.0
        if len(a) > _LONGEST_SHORT and len(b) > len(a) + 3:
            return 0.6  # policy and policyholder
        return 0.8 if len(a) >= 4 or len(b) <= 8 else 0.7
    if (len(a) >= 4 and b.endswith(a)) or (len(short) >= 4 and long.endswith(short)):
        # A compound in a role, such as Ziellager of Lager; one letter more is another word.
        return 0.85 if len(long) - len(short) > 2 else 0.6
    if len(a) >= 4 and a[:2] == b[:2] and _is_subsequence(a, b):
        return 0.7
    for left, right in ((a, b), (_singular(short).rstrip("aeiou"), long)):
        if (
            len(left) >= 2 and left[0] == right[0] and _is_subsequence(left, right)
            and not set(left[1:]) & _VOWELS
        ):  # fmt: skip
            return 0.7 if len(left) >= 3 else 0.55
    return 0.0


def _is_subsequence(short: str, long: str) -> bool:
    rest = iter(long)
    return all(letter in rest for letter in short)


def _covered(words: tuple[str, ...], others: tuple[str, ...]) -> float:
    """Return how well the words are found among others, on average of the worst and the mean."""
    if not words or not others:
        return 0.0
    best = [max(word_likeness(word, other) for other in others) for word in words]
    return min(best)


def abbreviates(word: str, words: tuple[str, ...]) -> bool:
    """Whether a word is made of beginnings of several, as `hdemo` of household_demographics."""
    ends = {0}
    for other in words[:-1]:
        ends = {
            end for start in ends for end in range(start + 1, len(word))
            if other.startswith(word[start:end])
        }  # fmt: skip
    return len(words) > 1 and any(
        len(word) - end > 2 and words[-1].startswith(word[end:]) for end in ends
    )


@lru_cache(maxsize=65536)
def table_likeness(base: tuple[str, ...], table: tuple[str, ...]) -> float:
    """Return how well a key's words name a table; `billing_address` names addresses."""
    if not base or not table:
        return 0.0
    core = _core(base)
    if core and core != base and not set(table) & ROLES:
        return max(0.95 * table_likeness(core, table), _beside(base, table))
    return _beside(base, table)


def names_more(base: tuple[str, ...], table: tuple[str, ...]) -> bool:
    """Whether a table's name stands in front of another noun: a store type is no store."""
    core = _core(base)
    return len(core) > len(table) and not _covered(table, core[-len(table) :])


def _core(base: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in base if word not in ROLES and word.isalpha() and len(word) > 1)


def _beside(base: tuple[str, ...], table: tuple[str, ...]) -> float:
    if len(base) == len(table) and _covered(base, table) == 1.0:
        return 1.0
    joined = word_likeness("".join(base), "".join(table))
    if joined == 1.0:
        return 1.0
    if abbreviates(base[-1], table):
        return 0.9
    tail = base[-len(table) :]
    if len(base) > len(table) and _covered(table, tail) > 0:
        return 0.9 * _covered(table, tail)  # a role: ship_address of addresses
    if len(base) == len(table):  # back_order has no word for that of lines in order_line
        return max(min(_covered(base, table), _covered(table, base)), joined) * 0.95
    if len(base) < len(table):
        ends = _covered(base, table[-len(base) :])
        begins = _covered(base, table[: len(base)])
        is_short = base == ("".join(word[0] for word in table),)  # oi of order_items
        return max(0.85 * ends, 0.6 * begins, 0.6 * joined, 0.75 * is_short)
    return 0.6 * _covered(table, base[: len(table)])


def is_made_up(name: str) -> bool:
    """Whether a column has a number for want of a name, which means nothing elsewhere."""
    return re.fullmatch("column_[0-9]+|_c[0-9]+", name) is not None


@lru_cache(maxsize=65536)
def key_likeness(
    child: str,
    child_prefix: str,
    child_table: str,
    parent: str,
    parent_prefix: str,
    parent_table: str,
) -> float:
    """Return how surely two names mean that values of one column are keys of the other's rows.

    The child's column refers, the parent's identifies; a prefix is a word that all columns of a
    table begin with.
    """
    if is_made_up(child) or is_made_up(parent):
        return 0.0
    table = table_words(parent_table)
    if words_of(child) == words_of(parent) and (words := column_words(child)).base:
        is_generic = set(words.base) <= GENERIC and not words.has_id
        return 0.3 if is_generic and table_likeness(words.base, table) < LIKE_ENOUGH else 1.0
    if len(table) > 1 and stem(parent_prefix) in map(stem, table):
        parent_prefix = ""  # of article_class: the class of something else
    mine, theirs = column_words(child, child_prefix), column_words(parent, parent_prefix)
    own = table_words(child_table)
    base = mine.base
    if not base:
        # `id` of a table that extends another one has the other's key: details of an order.
        return (
            0.9 * (own[: len(table)] == table and len(own) > len(table))
            if not theirs.base
            else (0.85 * (table_likeness(theirs.base, own) >= 0.9))
        )
    if not theirs.base:
        for key in (words_of(parent), theirs.whole):
            is_in_role = key in (mine.whole[-len(key) :], mine.whole[: len(key)])
            if is_in_role and sum(len(word) > 1 for word in key) > 1:
                return 1.0 if key == mine.whole else _IN_ROLE
        # The type of an admission is no vaccinetype, though a word of that ends so.
        is_other = set(base) <= GENERIC and not (
            mine.has_id or {*map(stem, base)} & {*map(stem, table)}
        )
        return 0.0 if is_other else _named(own, base, table)
    if mine.whole in (theirs.whole, words_of(parent)) or (
        base == theirs.base and mine.has_id == theirs.has_id
    ):
        return 0.3 if set(base) <= GENERIC and not mine.has_id else 1.0
    is_generic = set(theirs.base) <= GENERIC
    if is_generic and not theirs.has_id:
        return 0.6 * table_likeness(base, table)
    # `hdemo` is hd_demo, and not cd_demo: the prefix of a table is a part of its name.
    full = (parent_prefix, *theirs.base) if parent_prefix else theirs.base
    alike = 1.0 if abbreviates(base[-1], full) else table_likeness(base, theirs.base)
    if set(base) <= GENERIC and not mine.has_id:  # the name of one is no name of another
        alike = 0.0
    named = _named(own, base, table)
    if theirs.base == table[-len(theirs.base) :] and not _covered(theirs.base, base):
        named *= table[: len(base)] != base  # the card of person_cards is no person
    both = 0.9 * named if table_likeness(theirs.base, table) >= LIKE_ENOUGH else 0.7 * named
    return max(0.95 * alike, both)


def _named(own: tuple[str, ...], base: tuple[str, ...], table: tuple[str, ...]) -> float:
    """Likeness of a key's words to a table, which may have those of their own table in front.

    A `type_id` of orders is of `order_types`, and less of `payment_types`.
    """
    is_ours = len(table) > len(own) and tuple(map(stem, table[: len(own)])) == tuple(map(stem, own))
    return max(table_likeness(base, table), table_likeness((*own, *base), table) * is_ours)


def names_a_person(column: str, prefix: str, table: str) -> bool:
    """Whether a column may refer to a person of a table: `author_id` of users, `created_by`.

    `prefix` is a word that all columns of its table begin with; `table` is the other one.
    """
    words = column_words(column, prefix)
    is_reference = words.has_id or not _OF_PERSONS.isdisjoint(words.whole[-1:])
    return is_reference and bool(set(words.base) & PERSON_ROLES) and is_table_of_persons(table)


def is_about_change(column: str) -> bool:
    """Whether a column has when its row was written, or by whom: ModifiedDate, CREATEDBY."""
    return any(word.startswith(_CHANGES) for word in words_of(column))


_CHANGES = ("created", "modified", "update", "changed", "edited", "inserted", "deleted")


def is_table_of_persons(table: str) -> bool:
    """Whether a table has a row for each of some persons, by its name."""
    forms = {form for word in table_words(table) for form in (word, _singular(word), stem(word))}
    return not forms.isdisjoint(_PERSONS)


_PERSONS = PERSON_TABLES.union(form for word in PERSON_TABLES if len(form := stem(word)) > 4)
"""Forms of these words, of which `work` of work orders is none."""
_OF_PERSONS = frozenset({"by", "to", "von", "an"})
"""Last words of `created_by` and `assigned_to`."""
LIKE_ENOUGH = 0.7
"""Likeness from which a key's name repeats that of its own table: customer_no of customers."""
