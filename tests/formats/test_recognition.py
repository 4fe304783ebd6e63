"""Which tool wrote a file: recognised by its content."""

import json
import shutil
from pathlib import Path

import pytest
from tests.formats.written_files import DATA, NASTY, TIMES, WRITERS

import benchrigor as br
from benchrigor.errors import InvalidInput
from benchrigor.model import Code

FILES = sorted(path for path in DATA.rglob("*") if path.is_file())
TOOLS = {name.removesuffix(" csv").removesuffix(" 2") for name in WRITERS}
ONE_OF_A_FOLDER = "asv-0.6.6/host1/1f4885ef-existing-py_tmp_venv_bin_python.json"
SAMPLES = [*sorted(path.name for path in DATA.iterdir()), ONE_OF_A_FOLDER]


def tool_of(sample: str) -> str:
    """Return the tool by whose name a sample begins."""
    if sample.startswith("lines"):
        return "JSON lines"
    return max((tool for tool in TOOLS if sample.startswith(tool)), key=len)


def test_samples_are_small_and_of_every_tool() -> None:
    assert all(path.stat().st_size <= 30_000 for path in FILES)
    assert {*map(tool_of, SAMPLES), "benchrigor"} == TOOLS


@pytest.mark.parametrize("name", SAMPLES)
def test_a_tool_is_recognised_by_the_content_not_by_the_name(name: str, tmp_path: Path) -> None:
    copy = shutil.copytree if (DATA / name).is_dir() else shutil.copy
    results = br.read_results(copy(DATA / name, tmp_path / "results"))
    assert {each.subject["tool"] for each in results} == {tool_of(name)}
    assert all(each.metrics and json.dumps(each.to_dict()) for each in results)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_byte_order_marks_do_no_harm(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "results"
    path.write_text((DATA / "hyperfine.json").read_text(), encoding=encoding)
    assert len(br.read_results(path)) == 2


@pytest.mark.parametrize("text", ["1\n2\n3\n", "a,b\n1,2\n", "[1, 2]", '{"time": [1, 2]}'])
def test_columns_and_other_json_are_of_no_tool(cli, tmp_path: Path, text: str) -> None:
    path = tmp_path / "readings"
    path.write_text(text)
    with pytest.raises(InvalidInput):
        br.read_results(path)
    column = ("--column", "b") if "b" in text else ()
    assert cli("analyze", path, *column).exit_code != 2  # they are readings


@pytest.mark.parametrize("name", ["k6.ndjson", "k6.csv", "vegeta.json", "jmeter.csv"])
def test_an_unfinished_last_line_is_told_and_not_used(held, evidence, name: str) -> None:
    text = (DATA / name).read_text()
    whole, cut = held(text), held(text[:-4])
    for each in cut:
        assert evidence(each, Code.UNFINISHED_LINE)["line"] == len(text.splitlines())
    lost = sum(r.n_readings for each in whole for r in each.rounds)
    lost -= sum(r.n_readings for each in cut for r in each.rounds)
    assert lost in {0, 1}


@pytest.mark.parametrize("name", NASTY)
def test_names_stay_as_they_are_and_are_escaped_when_shown(held, name: str) -> None:
    (found,) = held({"results": [{"command": name, "times": [1.0, 2.0]}]})
    assert found.name == name
    assert not {"\n", "\x1b", "\u202e"} & set(repr(found))


def result(name: str, **told: object) -> dict[str, object]:
    return {"command": name, "times": [1.0, 2.0], **told}


@pytest.mark.parametrize(
    ("results", "names"),
    [
        ([result("a"), result("a"), result("a #2")], ["a", "a #3", "a #2"]),
        (
            [result("a", parameters={"n": n, "m": 5}) for n in ("1", "2", "2")],
            ["a (n=1)", "a (n=2)", "a (n=2) #2"],
        ),
        (
            [result("a --password=hunter2"), result("a --password=hunter3")],
            ["a --password=__hidden__", "a --password=__hidden__ #2"],
        ),
    ],
)
def test_benchmarks_of_one_name_have_names_that_show_what_differs(held, results, names) -> None:
    assert [each.name for each in held({"results": results})] == names


@pytest.mark.parametrize("end", ["\n", "", "\n\n"])
@pytest.mark.parametrize("indent", [None, 2])
def test_documents_one_after_another_are_read(held, end: str, indent: int | None) -> None:
    documents = ({"results": [result(name)]} for name in ("a", "b", "a"))
    texts = [json.dumps(each, indent=indent) + end for each in documents]
    assert [each.name for each in held("".join(texts))] == ["a", "b", "a #2"]
    with pytest.raises(InvalidInput):
        held(texts[0] + '{"other": 1}' + end + texts[1])


@pytest.mark.parametrize(
    ("above", "name"),
    [
        ("# run 5 of today\n# on a machine\n", "jmeter.csv"),
        ("# k6\n", "k6.csv"),
        ("Benchmarking ...\nwarmed up, at 3.5 GHz\n", "hyperfine.json"),
        ("# a comment\n", "jmh.json"),
        ("starting\n\n", "vegeta.json"),
    ],
)
def test_text_above_the_data_is_left_out_and_said_to_be(
    held, evidence, above: str, name: str
) -> None:
    text = (DATA / name).read_text()
    if "timeStamp" in text:  # a long file is read by its beginning
        text += text[text.index("\n") + 1 :] * 12
    whole, found = held(text), held(above + text)
    assert [each.name for each in found] == [each.name for each in whole]
    for each in found:
        assert evidence(each, Code.NOT_READ) == {}


def test_too_many_benchmarks_are_refused_but_for_those_that_are_named(tmp_path: Path, cli) -> None:
    path = tmp_path / "results"
    rows = ({"name": str(n), "unit": "s", "value": t} for n in range(10_001) for t in TIMES[:3])
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(InvalidInput):
        br.read_results(path)
    words = ("--target", "9%")
    assert cli("analyze", path, *words).exit_code == 2
    assert cli("analyze", path, "--column", "10000", *words).exit_code == 0
    assert cli("analyze", path, "--column", "10001", *words).exit_code == 2
