"""Conditions at the edges of files: their least and greatest values, members, and next to these.

Made of columns and of expressions alike, so that an index about an expression is asked about it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from decimal import Context, Decimal

import numpy as np
from support.skipping.proofconditions import Condition, literal, quoted
from support.skipping.prooffacts import Facts, Plain

_WHOLE = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
"""Integers, and their bits without the sign."""
_MOMENTS = {
    "date": "date_from_unix_date({})",
    "timestamp": "timestamp_micros({})",
    "timestamp_ntz": "CAST(timestamp_micros({}) AS timestamp_ntz)",
}
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31."""
_DAY = 86_400_000_000
_EXACTLY = Context(prec=76)


def edge_conditions(
    rng: random.Random, facts: Facts, texts: Sequence[str], columns: Sequence[str], count: int
) -> list[Condition]:
    """So many different conditions, or fewer where the files hold too little for that.

    Args:
        rng: of all that is drawn.
        facts: what the files hold.
        texts: what is asked about: columns and expressions of `facts`.
        columns: the column that each one is made of.
        count: of conditions.
    """
    found: dict[str, Condition] = {}
    for _ in range(4 * count):
        if len(found) == count:
            break
        place = rng.randrange(len(texts))
        text = _edge(rng, facts, texts[place])
        if text:
            found[text] = Condition(
                text, frozenset({columns[place]}), about=frozenset({texts[place]})
            )
    return list(found.values())


def _edge(rng: random.Random, facts: Facts, text: str) -> str:
    data_type = facts.types[text]
    holding = [file.values[text] for file in facts.files if file.values[text]]
    if not holding:
        return ""

    def one() -> str:
        values = rng.choice(holding)
        value = rng.choice([values[0], values[-1], rng.choice(values)])
        return plain_literal(near(rng, value, data_type), data_type)

    def several() -> str:
        return ", ".join(one() for _ in range(rng.randint(1, 12)))

    operator = rng.choice(["=", "=", "<=>", "<>", "<", "<=", ">", ">="])
    forms: list[Callable[[], str]] = [
        lambda: f"{text} {operator} {one()}",
        lambda: f"{text} {operator} {one()}",
        lambda: f"{text} {operator} {one()}",
        lambda: f"{one()} {operator} {text}",
        lambda: f"{text} IN ({several()})",
        lambda: f"{text} NOT IN ({several()})",
        lambda: f"{text} BETWEEN {one()} AND {one()}",
        lambda: f"NOT ({text} {operator} {one()})",
    ]
    if data_type == "string":
        forms.append(lambda: f"startswith({text}, {one()})")
    return rng.choice(forms)()


def near(rng: random.Random, value: Plain, data_type: str) -> Plain:
    """A value, or the one just before or after it."""
    step = rng.choice([0, 0, -1, 1])
    if step == 0:
        return value
    match value:
        case bool():
            return not value
        case int() if data_type in _MOMENTS:
            unit = 1 if data_type == "date" else _DAY
            return min(max(value + step, _FIRST_DAY * unit), (_LAST_DAY + 1) * unit - 1)
        case int():
            limit = 2 ** _WHOLE[data_type]
            return min(max(value + step, -limit), limit - 1)
        case float():
            to = math.copysign(math.inf, step)
            if data_type == "float":
                return float(np.nextafter(np.float32(value), np.float32(to)))
            return math.nextafter(value, to)
        case Decimal():
            return _next_decimal(value, step, data_type)
        case bytes() if data_type == "string":
            text = value.decode()
            return (text + "\x01" if step > 0 else text[:-1]).encode()
        case bytes():
            return value + b"\0" if step > 0 else value[:-1]
    raise TypeError(f"no neighbour: {value!r}")


def plain_literal(value: Plain, data_type: str) -> str:
    """A value as SQL."""
    if data_type in _MOMENTS:
        return _MOMENTS[data_type].format(value)
    if isinstance(value, bytes) and data_type == "string":
        return quoted(value.decode())
    return literal(value, data_type)


def _next_decimal(value: Decimal, step: int, data_type: str) -> Decimal:
    precision, scale = map(int, data_type.removeprefix("decimal(").removesuffix(")").split(","))
    whole = int(value.scaleb(scale, _EXACTLY)) + step
    limit = 10**precision - 1
    return Decimal(min(max(whole, -limit), limit)).scaleb(-scale, _EXACTLY)
