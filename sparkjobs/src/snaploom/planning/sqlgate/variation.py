"""Parts of a parsed text that vary when computed again, by their dependence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlglot import exp

from snaploom.planning.sqlgate.functions import Determinism
from snaploom.planning.sqlgate.lexer import Token, TokenKind
from snaploom.planning.sqlgate.nondeterminism import WORDS, moments, varying_calls


def varying(parsed: exp.Expr, tokens: Sequence[Token]) -> Mapping[Determinism, tuple[str, ...]]:
    """The parts of a text that vary, as people write them, by their dependence."""
    found: dict[Determinism, dict[str, None]] = {}
    parts = (varying_calls(tokens), moments(tokens), _bare_words(parsed, tokens), _clauses(parsed))
    for part in parts:
        for determinism, shown in part:
            found.setdefault(determinism, {})[shown] = None
    return {determinism: tuple(shown) for determinism, shown in found.items()}


def _bare_words(parsed: exp.Expr, tokens: Sequence[Token]) -> Iterator[tuple[Determinism, str]]:
    """Functions without brackets; a word that the text itself gives to a column is none."""
    own = {alias.alias.casefold() for alias in parsed.find_all(exp.Alias)}
    for place, token in enumerate(tokens):
        word = token.value.casefold()
        if token.kind is not TokenKind.WORD or word not in WORDS or word in own:
            continue
        before = tokens[place - 1].value if place else ""
        behind = tokens[place + 1].value if place + 1 < len(tokens) else ""
        if before != "." and behind not in (".", "("):
            yield Determinism.SESSION, token.upper


def _clauses(parsed: exp.Expr) -> Iterator[tuple[Determinism, str]]:
    if parsed.find(exp.TableSample) is not None:
        yield Determinism.RANDOM, "TABLESAMPLE"
    for query in parsed.find_all(exp.Query):
        if _is_cut(query) and not query.args.get("order"):
            yield Determinism.ORDER, "LIMIT without ORDER BY"


def _is_cut(query: exp.Expr) -> bool:
    return bool(query.args.get("limit") or query.args.get("offset"))
