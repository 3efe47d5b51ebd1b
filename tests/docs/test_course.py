"""Fifteen topics of the course, each in at most three lines with the picture that they draw."""

import matplotlib.pyplot as plt
import pytest

from tests.common.test_house import load_tool

COURSE = load_tool("course")
TOPICS = COURSE.topics()


@pytest.fixture(scope="module")
def names():
    found = {}
    exec(COURSE.setup(), found)
    return found


@pytest.mark.parametrize("title", TOPICS, ids=lambda title: title.partition(". ")[2])
def test_a_topic_takes_three_lines_and_draws(title, names):
    assert 1 <= len(TOPICS[title].splitlines()) <= 3
    exec(TOPICS[title], names)
    shown = [code for code in COURSE.pictures().values() if code == TOPICS[title]]
    assert len(plt.get_fignums()) == len(shown) >= 1
    plt.close("all")


def test_there_are_fifteen_topics():
    assert [int(title.partition(".")[0]) for title in TOPICS] == list(range(1, 16))


def test_pictures_were_drawn_by_the_code_above_them():
    assert COURSE.stale() == [], "run python tools/course.py"
