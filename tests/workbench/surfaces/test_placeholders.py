"""Places for levels in texts."""

import pytest

from benchrigor.workbench.surfaces.placeholders import fill_places, places_in


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("{a}{a} {b}", ["a", "a", "b"], "22 x y"),
        ('{"threads": {a}}', ["a"], '{"threads": 2}'),
        ("${a} {{a}} {} {1} { a }", [], "${a} {a} {} {1} { a }"),
        ("{load}", ["load"], "{load}"),
        ("{c} {d}", ["c", "d"], "0.1 1e+20"),
        ("{größe}", ["größe"], "9"),
    ],
)
def test_places_are_words_in_braces(text, names, expected):
    point = {"a": 2.0, "b": "x y", "c": 0.1, "d": 1e20, "größe": 9}
    assert [*places_in({"one": [text]})] == names
    assert fill_places((text, 1, None), point) == (expected.replace("1e+20", str(10**20)), 1, None)


def test_a_level_with_braces_is_not_filled_again():
    assert fill_places("{a}", {"a": "{b}", "b": "no"}) == "{b}"
