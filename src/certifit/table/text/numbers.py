"""Numbers as people write them: with separators of thousands, decimal commas, a currency, percent or a unit.

    $1,234.50   37 %   1.234,5   1'234   EUR 20   120 m²   (1,200)

All entries of a column have the same unit; of amounts of money some may have none. A currency stands before or after
the number, a unit after it: "room 12" is no number. Numbers that begin with 0, such as postal codes, stay text.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

_BLANKS = " \u00a0\u2009\u202f'’"  # that part thousands in either form


class NumberForm(NamedTuple):
    """How numbers are written: what parts thousands, and what parts decimals."""

    thousands: str
    decimal: str

    @property
    def pattern(self) -> str:
        """What a number without sign and unit looks like."""
        point = re.escape(self.decimal)
        groups = "|".join(f"([{mark}][0-9]{{3}})+" for mark in (re.escape(self.thousands), _BLANKS))
        return rf"^(([0-9]{{1,3}}({groups})|[0-9]+)({point}[0-9]+)?|{point}[0-9]+)([eE][-+]?[0-9]+)?$"


FORMS = {"numbers": NumberForm(",", "."), "numbers with decimal commas": NumberForm(".", ",")}
UNIT_WORD = ", in "  # between the name of a form and a unit
_CURRENCIES = frozenset(
    [
        "$",
        "€",
        "£",
        "¥",
        "₹",
        "₽",
        "₩",
        "₺",
        "₫",
        "₴",
        "₪",
        "฿",
        "US$",
        "A$",
        "C$",
        "NZ$",
        "R$",
        "Fr.",
        "Fr",
        "CHF",
        "EUR",
        "USD",
        "GBP",
        "JPY",
        "CNY",
        "INR",
        "AUD",
        "CAD",
        "NZD",
        "SEK",
        "NOK",
        "DKK",
        "PLN",
        "CZK",
        "HUF",
        "RON",
        "BRL",
        "MXN",
        "ZAR",
        "TRY",
        "RUB",
        "KRW",
        "SGD",
        "HKD",
        "THB",
        "IDR",
        "ILS",
        "AED",
        "SAR",
        "kr",
        "kr.",
        "zł",
        "Kč",
        "Ft",
        "Rs",
        "Rs.",
        "Euro",
        "euro",
    ]
)
_UNIT = re.compile(r"%|‰|[°µ]?[^\W\d_]{1,6}[²³23]?(/[^\W\d_]{1,4}[²³]?)?\.?|[°'\"′″]")
_MARK = r"[^-+0-9.,()\s][^-+0-9()]{0,11}?"  # anything that may be a unit
_ENTRY = (
    rf"^(?P<open>[(]?)(?P<first>[-+]?) ?(?P<before>(?:{_MARK})?)\s?(?P<sign>[-+]?) ?"
    rf"(?P<number>[.,]?[0-9](?:[0-9.,{_BLANKS}]*[0-9])?(?:[eE][-+]?[0-9]+)?)\s?(?P<after>(?:{_MARK})?)(?P<close>[)]?)$"
)


class WrittenNumbers(NamedTuple):
    """Entries of text taken apart; null where they are no number with at most one unit."""

    number: Any  # what is left without sign and unit
    negative: Any
    unit: Any

    @classmethod
    def of(cls, text: Any) -> WrittenNumbers:
        """Take text (without holes) apart; parentheses are a sign, as in accounts."""
        text = text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
        text = pc.replace_substring(text, "\u2212", "-")  # the sign that typesetters use
        parts = pc.extract_regex(text, pattern=_ENTRY)
        part = {name: pc.struct_field(parts, name) for name in ("open", "first", "before", "sign", "after", "close")}
        signs = pc.binary_join_element_wise(part["first"], part["sign"], "")
        brackets = pc.binary_join_element_wise(part["open"], part["close"], "")
        fine = pc.and_(
            pc.is_in(signs, pa.array(["", "-", "+"])),
            pc.or_(pc.equal(brackets, ""), pc.and_(pc.equal(brackets, "()"), pc.equal(signs, ""))),
        )
        one = pc.or_(pc.equal(part["before"], ""), pc.equal(part["after"], ""))
        unit = pc.utf8_trim_whitespace(pc.binary_join_element_wise(part["before"], part["after"], ""))
        # A word before the number is marked, so that only currencies are units there.
        unit = pc.if_else(
            pc.or_(pc.equal(part["before"], ""), pc.is_in(unit, pa.array([*_CURRENCIES]))), unit, "no unit 0"
        )
        number = pc.if_else(pc.and_(fine, one), pc.struct_field(parts, "number"), None)
        return cls(number, pc.or_(pc.equal(signs, "-"), pc.equal(brackets, "()")), unit)


def units_of(text: Any) -> frozenset[str]:
    """The different units of entries of text, "" where there is none."""
    return frozenset(pc.unique(pc.fill_null(WrittenNumbers.of(text).unit, "no unit 0")).to_pylist())


def common_unit(units: Collection[str]) -> str | None:
    """The unit of a whole column; None where entries have different ones, or what is none."""
    named = {*units} - {""}
    if not named:
        return ""
    unit = min(named)
    if len(named) > 1 or not (unit in _CURRENCIES or _UNIT.fullmatch(unit)):
        return None
    return unit if unit in _CURRENCIES or "" not in units else None


def fitting_forms(text: Any) -> list[str]:
    """The forms in which every entry of some text (without holes) is a number, whatever its unit."""
    number = WrittenNumbers.of(text).number
    if number.null_count or pc.any(pc.match_substring_regex(number, "^0[0-9]")).as_py():
        return []
    return [name for name, form in FORMS.items() if pc.all(pc.match_substring_regex(number, form.pattern)).as_py()]


def number_reading(form: str, unit: str) -> str:
    """The name of a way to read text: the form, and the unit of its numbers where they have one."""
    return f"{form}{UNIT_WORD}{unit}" if unit else form


def is_number_reading(reading: str) -> bool:
    """Whether a way to read text gives numbers."""
    return reading.partition(UNIT_WORD)[0] in FORMS


def read_numbers(text: pa.ChunkedArray, reading: str, any_unit: bool = False) -> pa.ChunkedArray:
    """Text (without holes) as numbers, whole where all are; null where an entry is none, or has another unit."""
    name, _, unit = reading.partition(UNIT_WORD)
    form, found = FORMS[name], WrittenNumbers.of(text)
    fine = pc.match_substring_regex(found.number, form.pattern)
    if not any_unit:
        # Models that were saved before units were told apart take any money, and percent.
        known = ["", unit] if unit else ["", "$", "€", "£", "¥", "%"]
        fine = pc.and_(fine, pc.is_in(found.unit, pa.array(known)))
    plain = pc.replace_substring_regex(
        pc.if_else(fine, found.number, None), rf"[{re.escape(form.thousands)}{_BLANKS}]", ""
    )
    size = pc.replace_substring(plain, form.decimal, ".").cast(pa.float64())
    numbers = pa.chunked_array([pc.if_else(found.negative, pc.negate(size), size)])
    whole = pc.all(pc.and_(pc.equal(pc.round(numbers), numbers), pc.less(pc.abs(numbers), 2.0**53))).as_py()
    return numbers.cast(pa.int64()) if whole else numbers
