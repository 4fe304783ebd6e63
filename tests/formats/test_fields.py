import pytest

from benchrigor.errors import InvalidInput
from benchrigor.formats.fields import check, flat, in_base_unit, only_summary, scale


@pytest.mark.parametrize(
    ("unit", "base", "factor"),
    [
        ("ns/op", "s", 1e-9),
        ("ms", "s", 1e-3),
        ("min/op", "s", 60.0),
        ("ops/us", "ops/s", 1e6),
        ("MB/s", "MB/s", 1.0),
        ("allocs/op", "allocs", 1.0),
        ("furlongs", "furlongs", 1.0),
        ("", "", 1.0),
    ],
)
def test_times_become_seconds_and_rates_per_second(unit: str, base: str, factor: float) -> None:
    assert in_base_unit(unit) == (base, pytest.approx(factor, rel=1e-15))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "NaN", None, True, [1.0]])
def test_readings_that_are_no_finite_numbers_are_named(bad: object) -> None:
    if bad is True:
        assert scale([1.0, bad], 1.0, "here").tolist() == [1.0, 1.0]
        return
    with pytest.raises(InvalidInput, match=r"here\[1\] is .*, expected|two dimensions"):
        scale([1.0, bad], 1e-9, "here")


def test_a_missing_key_and_one_of_another_kind_are_named() -> None:
    with pytest.raises(InvalidInput, match="here has no 'a'"):
        check({}, {"a": list}, "here")
    with pytest.raises(InvalidInput, match="here a is 'b', expected a list"):
        check({"a": "b"}, {"a": list}, "here")
    with pytest.raises(InvalidInput, match="here is 3, expected an object"):
        check(3, {"a": list}, "here")


def test_a_value_of_another_type_is_named_at_any_depth() -> None:
    shape = {"runs": [{"times": list, "id?": int}], "known?": {str: [[str]]}}
    check({"runs": [{"times": [None], "id": None}], "known": {"a": [["b"]]}, "more": 5}, shape, "f")
    for data, said in [
        ({"runs": [{"times": []}, 5]}, r"f runs\[1\] is 5, expected an object"),
        ({"runs": [{"times": [], "id": True}]}, r"f runs\[0\] id is True, expected a whole"),
        ({"runs": [], "known": {"a": [5]}}, r"f known\['a'\]\[0\] is 5, expected a list"),
        ({"runs": [], "known": {"a": [[5]]}}, r"f known\['a'\]\[0\]\[0\] is 5, expected a text"),
    ]:
        with pytest.raises(InvalidInput, match=said):
            check(data, shape, "f")


def test_metadata_is_flat() -> None:
    told = {"cpu": {"hz": [1, 2], "n": 2}, "empty": "", "none": None, "ok": True}
    assert flat(told) == {"cpu.hz": "[1, 2]", "cpu.n": 2, "ok": True}


def test_a_summary_shows_its_figures_only() -> None:
    held = only_summary({"mean": 1.5, "text": "a", "flag": True}, "run tool with --raw")
    (notice,) = held["notices"]
    assert notice.sentence == (
        "The file has no raw readings, only mean 1.5. To keep the readings, run tool with --raw."
    )
    assert dict(notice.evidence) == {
        "mean": 1.5,
        "cure": "To keep the readings, run tool with --raw.",
    }
