"""Only proved digits are printed: the number printed and the true one agree to one unit of its last digit."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import certifit
from certifit.core.text_table import html_table, proved_digits
from certifit.model_selection.result_table import ResultTable


@given(st.floats(-1e12, 1e12), st.floats(-14, 14), st.floats(-1, 1))
def test_the_last_digit_is_right_to_one_unit(value, size, where):
    error = 10.0**size
    text = proved_digits(value, error)
    truth = value + where * error
    if "±" in text:
        assert abs(truth) <= float(text.split("±")[1]) * (1 + 1e-9)
        return
    mantissa, _, exponent = text.partition("e")
    decimals = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(exponent or 0) - decimals)
    if not exponent and "." not in mantissa:  # trailing zeros before the point stand for places, too
        unit = 10.0 ** (len(mantissa.lstrip("-")) - min(5, len(mantissa.lstrip("-"))))
    assert abs(float(text) - truth) <= unit * (1 + 1e-9)


@pytest.mark.parametrize("error", [math.inf, math.nan])
def test_without_a_proof_no_digit_is_printed(error):
    assert proved_digits(3.14, error) == "unproved"


def test_examples():
    assert proved_digits(math.pi, 0.0) == "3.1416"
    assert proved_digits(math.pi, 1e-3) == "3.14"
    assert proved_digits(-math.pi, 0.4) == "-3"
    assert proved_digits(0.0, 0.0) == "0"
    assert proved_digits(0.0, 1e-7) == "0 ± 1e-07"
    assert proved_digits(1234567.0, 1.0, most=7) == "1.23457e+06"


def test_words_from_data_do_not_turn_round_what_stands_beside_them():
    """In what notebooks show, as on pages: overrides of the direction of text and control characters are replaced."""
    name = "cost\u202egnp.\u2066\x1b[2Jx"
    X = pd.DataFrame({name: np.arange(8.0), "b": np.arange(8.0) ** 2})
    model = certifit.LinearRegression().fit(X, X["b"])
    summary, table = model.summary(), ResultTable(name, {name: [name]}, (name,))
    chosen = certifit.SelectKBest(k=1).fit(X, np.arange(8) % 2)  # its box lists the columns
    for shown in (summary, table, model.certificate_, chosen):
        text = shown._repr_html_()
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", text), type(shown)
    assert "cost\ufffdgnp.\ufffd\ufffd[2Jx" in summary._repr_html_()
    assert html_table([(name,)], caption=name).count("cost\ufffdgnp") == 2
