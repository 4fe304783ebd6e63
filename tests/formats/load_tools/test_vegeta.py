import pytest

from benchrigor.errors import InvalidInput


@pytest.mark.parametrize("name", ["vegeta.json", "vegeta.csv"])
def test_requests_stand_in_the_order_in_which_they_were_sent(sample, name, document) -> None:
    (found,) = sample(name).values()
    (only,) = found.rounds
    assert only.unit_readings["time"].size == 50
    assert only.unit_readings["time"] == pytest.approx(2.5e-3, rel=0.1)
    same = sample("vegeta.csv")["vegeta"].rounds[0].unit_readings["time"]
    assert (only.unit_readings["time"] == same).all()
    assert found.notices[0].evidence["failed"] == 1


def test_the_order_is_not_that_of_the_lines(held) -> None:
    line = '{"seq": %d, "code": 200, "timestamp": "t", "latency": %d}\n'
    (found,) = held(line % (1, 2_000_000_000) + line % (0, 1_000_000_000))
    assert found.rounds[0].unit_readings["time"].tolist() == [1.0, 2.0]


def test_attacks_are_told_apart(held) -> None:
    line = '{"attack": "%s", "seq": 0, "code": 200, "timestamp": "t", "latency": 1}\n'
    assert [each.name for each in held(line % "a" + line % "b")] == ["a", "b"]


def test_wrong_fields_are_named(held) -> None:
    with pytest.raises(InvalidInput, match="object 1 latency is 'x', expected a whole"):
        held('{"code": 200, "timestamp": "t", "latency": "x"}\n' * 2)


@pytest.mark.parametrize("form", ["json", "csv"])
def test_targets_that_come_back_are_told_apart(held, form) -> None:
    line = (
        '{"seq": %d, "code": 200, "timestamp": "t", "latency": 1, "method": "GET", "url": "%s"}\n'
        if form == "json"
        else '1795200000000000000,200,1,0,0,"","",load,%d,GET,%s,\n'
    )
    attack = "vegeta" if form == "json" else "load"
    found = held("".join(line % (n, "ab"[n % 2]) for n in range(6)))
    assert [each.name for each in found] == [f"{attack} GET a", f"{attack} GET b"]
    (found,) = held("".join(line % (n, f"item/{n}") for n in range(6)))  # each once
    assert (found.name, found.rounds[0].n_readings) == (attack, 6)
