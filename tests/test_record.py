"""A record is a frozen value: like a frozen dataclass with slots, but cheap to declare."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import pytest

from refactor_tool.record import record


@record
class Point:
    x: int
    y: int = 2

    def sum(self) -> int:
        return self.x + self.y


@record
class One:
    x: int


@record
class Other:
    x: int


@record
class Nothing:
    pass


@dataclass(frozen=True, slots=True)
class Model:
    x: int
    y: int = 2


def test_it_behaves_like_the_standard_one() -> None:
    ours, theirs = Point(1), Model(1)
    assert (ours.x, ours.y, ours.sum()) == (theirs.x, theirs.y, 3)
    assert repr(ours) == repr(theirs).replace("Model", "Point")
    assert Point(1) == Point(x=1, y=2) != Point(1, 3)
    assert hash(Point(1)) == hash(Point(1))
    assert Point.__match_args__ == Model.__match_args__
    assert not hasattr(ours, "__dict__")


def test_equal_attributes_of_another_class_are_not_equal() -> None:
    assert One(1) != Other(1)
    assert One(1) != (1,)
    assert {One(1), One(1), One(2)} == {One(2), One(1)}


def test_it_is_frozen() -> None:
    point = Point(1)
    with pytest.raises(AttributeError, match="frozen: cannot change 'x'"):
        point.x = 3  # type: ignore[misc]
    with pytest.raises(AttributeError, match="frozen"):
        del point.y
    with pytest.raises(AttributeError):
        point.z = 1  # type: ignore[attr-defined]


def test_it_matches_by_position_and_name() -> None:
    match Point(1, 5):
        case Point(1, y=y):
            assert y == 5
        case _:
            pytest.fail("no match")


@pytest.mark.parametrize("value", [Point(1, 3), One(4), Other(5)])
def test_it_survives_pickling(value: object) -> None:
    assert pickle.loads(pickle.dumps(value)) == value


def test_it_is_true_and_no_plain_tuple() -> None:
    assert Nothing() and Nothing() == Nothing() != One(1)
    assert One(1) not in [(1,)]
    assert (1,) not in [One(1)]


def test_the_first_value_may_be_made_by_name() -> None:
    @record
    class Late:
        x: int
        y: int = 2

    assert [Late(y=3, x=1), Late(1)] == [Late(1, 3), Late(1, 2)]
    with pytest.raises(TypeError, match="missing 1 required"):
        Late()  # type: ignore[call-arg]


def test_wrong_calls_are_errors() -> None:
    with pytest.raises(TypeError):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="without a default follows"):

        @record
        class Bad:
            x: int = 1
            y: int  # type: ignore[misc]
