import pytest

from benchrigor.errors import InvalidInput


def test_labels_are_told_apart_and_times_become_seconds(sample) -> None:
    found = sample("jmeter.csv")
    assert [*found] == ["home", "search, all"]
    assert found["search, all"].rounds[0].unit_readings["time"] == pytest.approx(0.09, rel=0.1)
    assert found["home"].rounds[0].n_readings == 40  # a cell with a line break is one row


def test_samples_that_failed_are_told(sample) -> None:
    found = sample("jmeter.csv")
    assert found["search, all"].notices == ()
    assert found["home"].notices[0].evidence["failed"] == 1


@pytest.mark.parametrize("bad", ["", "x", "NaN", "1e999"])
def test_times_that_are_no_numbers_are_named(held, bad) -> None:
    with pytest.raises(
        InvalidInput, match=r"line 2 has .* for elapsed|elapsed of a\[0\] is (nan|inf)"
    ):
        held(f"timeStamp,elapsed,label,success\n1,{bad},a,true\n")


def test_a_quote_that_is_not_closed_is_an_error(held) -> None:
    with pytest.raises(InvalidInput, match="is no CSV"):
        held('timeStamp,elapsed,label,success\n1,2,"a,true\n')
