"""Long tables are read at once where they are plain, and say what the careful reader says."""

import numpy as np
import pytest

from benchrigor.errors import InvalidInput
from benchrigor.formats import readings

ROWS = [f"{index},{index / 7!r},a b" for index in range(5_000)]
TEXT = "\n".join(["n,time,who", *ROWS, ""])


def long_file(tmp_path, text: str, **how) -> str:
    path = tmp_path / "long.csv"
    path.write_bytes(text.encode(**how))
    return str(path)


def read(path: str, column: str | None) -> list[float]:
    return readings.Columns(column=column).read(path).series[0].tolist()


def both(path: str, monkeypatch, column: str | None = "time"):
    """Read a file as it is read, and carefully."""
    found = []
    for head in (1 << 16, 10**9):
        monkeypatch.setattr(readings, "_HEAD", head)
        try:
            found.append(read(path, column))
        except InvalidInput as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace("\n", "\r\n"),
        "\ufeff" + TEXT,
        "\n\n" + TEXT,
        TEXT.replace(",", ";"),
        TEXT.replace(",", "\t"),
        TEXT[len("n,time,who\n") :].replace("a b", "0"),
    ],
    ids=["plain", "windows", "mark", "blank", "semicolon", "tab", "no header"],
)
def test_a_plain_table_is_read_without_the_careful_reader(text, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(readings, "_text", None)
    column = "1" if "time" not in text else "time"
    assert read(long_file(tmp_path, text), column) == [index / 7 for index in range(5_000)]


ODD = {
    "row": [
        *("1,2", "1,2,3,4", "1,,a", "1,nan,a", "1,-inf,a", "1,0x10,a", "1,1_0,a", "1,1e999,a"),
        *('1,"2",a', "", " ", ",,", "1, 2.5 ,a", "1,2;3,a", "1,2\t,a", "1,2,\u00e9", "1,2,a\x0bb"),
        *("1,1e,a", "1,+-1,a", "1,1-2,a", "1,.,a", "1,1 2,a", "1,2,a\rb", "1,2,\0", "1,.5e-3,a"),
        *("1,1/2,a", "1,12ms,a", '1,"2,a', "1,-1.e+2,a", "1,1d5,a", "1,١,a", "1,1e-400,a"),
    ],
    "end": ["5000,1.5,a", "5000,1.", "5000", "\n", "5000,1.5,a\r"],
    "line": [
        *('{"n": 1}', '{"time": null}', '{"time": true}', '{"time": NaN}', '{"time": 1e999}'),
        *('{"time": "1"}', '{"time": 1, "time": 2}', '{"time": {"time": 1}}', '{"time": [1]}'),
        *('{"time": 1, "a": "{"}', '{"time": 1} {"time": 2}', '{"time": 1}, {"time": 2}'),
        *("", "[1]", "5", '"time"', "{", "}", '{"time": 1', '{"time": 1},', '{"time": 01}'),
        *('{"a b":\n{"time": 1}}', '{"time": 1, "a": [{"time": 1}\n{}]}, {"time": 1}'),
        *(f'{{"time": 1{"0" * 400}}}', '{"time": 5, "more": {"x": 1}}'),
        '{"who": "\u00e9", "time": -0.5}',
    ],
}
LINES = [f'{{"n": {index}, "time": {index / 7!r}, "who": "a\\u00e9"}}' for index in range(5_000)]


@pytest.mark.parametrize(("kind", "odd"), [(kind, odd) for kind in ODD for odd in ODD[kind]])
def test_any_row_of_many_is_what_the_careful_reader_says(kind, odd, tmp_path, monkeypatch) -> None:
    if kind == "end":
        text = TEXT + odd
    elif kind == "row":
        text = "\n".join(["n,time,who", *ROWS[:4_000], odd, *ROWS[4_000:], ""])
    else:
        text = "\n".join([*LINES[:4_000], odd, *LINES[4_000:], ""])
    quick, careful = both(long_file(tmp_path, text), monkeypatch)
    assert quick == careful


def test_where_a_part_ends_does_not_matter(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(readings, "_text", None)
    whole = "n,time\n" + "".join(f"{n},{n / 3:.3f}\n" for n in range(150_000))
    for column, values in (
        ("n", range(150_000)),
        ("time", (round(n / 3, 3) for n in range(150_000))),
    ):
        assert read(long_file(tmp_path, whole), column) == [*values]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_flat_json_lines_are_read_without_the_careful_reader(end, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(readings, "_text", None)
    path = long_file(tmp_path, end.join([*LINES, ""]))
    assert read(path, "n") == [*range(5_000)]
    assert read(path, "time") == [n / 7 for n in range(5_000)]


@pytest.mark.parametrize("style", [".9g", ".3f", ".15g", ".16f", "g", ".0f", ".6e"])
def test_digits_are_read_as_python_reads_them(style, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(readings, "_text", None)
    monkeypatch.setattr(readings, "_HEAD", 1 << 14)
    values = np.random.default_rng(3).lognormal(0.0, 10.0, 4_000)
    cells = [format(value, style) for value in values]
    for more in ([], ["7", "1.", ".5", "007", "9007199254740993", "0.1234567890123456"]):
        text = "time,n\n" + "".join(f"{cell},1\n" for cell in [*cells, *more])
        assert read(long_file(tmp_path, text), "time") == [*map(float, [*cells, *more])]
