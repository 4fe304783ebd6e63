import gzip
import json
import shutil
from pathlib import Path

import pytest

from benchrigor.errors import InvalidInput
from benchrigor.formats.recognition import TOOLS, results_in
from benchrigor.model import Code, Round, RunRecord
from benchrigor.model.codec import encode
from benchrigor.model.recorded import Recorded
from benchrigor.testing import SyntheticWorkload

DATA = Path(__file__).parent / "data"
FILES = sorted(path for path in DATA.rglob("*") if path.is_file())
TOOL_OF = {
    "pyperf-2.11.0.json": "pyperf",
    "pyperf-2.11.0-memory.json.gz": "pyperf",
    "pytest-benchmark-5.3.1.json": "pytest-benchmark",
    "asv-0.6.6": "asv",
    "asv-0.6.6/host1/1f4885ef-existing-py_tmp_venv_bin_python.json": "asv",
    "hyperfine.json": "hyperfine",
    "hyperfine-1.15.0.json": "hyperfine",
    "hyperfine-2.0.0.json": "hyperfine",
    "google-benchmark.json": "google-benchmark",
    "google-benchmark-1.4.json": "google-benchmark",
    "google-benchmark-1.9.5.json": "google-benchmark",
    "criterion": "criterion",
    "criterion-0.3.6": "criterion",
    "go-1.19.8.txt": "go",
    "jmh.json": "jmh",
    "go.txt": "go",
    "go-json.ndjson": "go",
    "k6.ndjson": "k6",
    "k6.csv": "k6",
    "vegeta.json": "vegeta",
    "vegeta.csv": "vegeta",
    "jmeter.csv": "jmeter",
    "lines.ndjson": "JSON lines",
}
SUMMARIES = {
    "pytest-benchmark-5.3.1-saved.json": "--benchmark-save-data",
    "k6-summary.json": "--out json",
    "vegeta-report.json": "vegeta encode --to json",
}


def test_samples_are_small_and_of_every_tool() -> None:
    assert all(path.stat().st_size <= 30_000 for path in FILES)
    assert {*TOOL_OF.values(), "benchrigor"} == {*TOOLS}


@pytest.mark.parametrize("name", TOOL_OF)
def test_a_tool_is_recognised_by_the_content_not_by_the_name(name: str, tmp_path: Path) -> None:
    source = DATA / name
    if source.is_dir():
        path = Path(shutil.copytree(source, tmp_path / "folder"))
    else:
        path = Path(shutil.copy(source, tmp_path / "results"))
    results = results_in(path)
    assert results
    assert {each.subject["tool"] for each in results} == {TOOL_OF[name]}
    assert all(isinstance(each, Recorded) and each.metrics for each in results)
    assert all(json.dumps(encode(each)) for each in results)


@pytest.mark.parametrize("name", SUMMARIES)
def test_a_file_without_readings_says_what_it_holds_and_the_option_that_keeps_them(name) -> None:
    for each in results_in(DATA / name):
        assert each.rounds == ()
        (notice,) = each.notices
        assert notice.code is Code.NO_RAW_READINGS
        assert notice.severity == "refusal"
        assert SUMMARIES[name] in notice.sentence
        assert len(notice.evidence) > 3


@pytest.mark.parametrize(
    "name", [name for name in TOOL_OF if name.endswith((".json", ".gz")) and name != "vegeta.json"]
)
def test_json_that_is_cut_is_an_error(name: str, tmp_path: Path) -> None:
    raw = (DATA / name).read_bytes()
    text = gzip.decompress(raw) if name.endswith("gz") else raw
    path = tmp_path / "cut"
    path.write_bytes(text[: len(text) // 2])
    with pytest.raises(InvalidInput, match="cut is no JSON: "):
        results_in(path)


def test_a_compressed_file_that_is_cut_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "cut"
    path.write_bytes((DATA / "pyperf-2.11.0-memory.json.gz").read_bytes()[:200])
    with pytest.raises(InvalidInput, match="cut cannot be read"):
        results_in(path)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_byte_order_marks_do_no_harm(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "results"
    path.write_text((DATA / "hyperfine.json").read_text(), encoding=encoding)
    assert len(results_in(path)) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "results is empty, expected readings"),
        (" \n", "results is empty, expected readings"),
        ('{"results": []}', "results holds no benchmarks"),
        ('{"version": "1.0", "benchmarks": []}', "results holds no benchmarks"),
        (
            '{"results": [{"command": "a"}], "version": "1.0", "benchmarks": [{"runs": []}]}',
            "has the keys of pyperf and of hyperfine, expected those of one tool",
        ),
    ],
)
def test_what_is_empty_or_of_two_tools_is_an_error(held, text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        held(text)


@pytest.mark.parametrize("text", ["1\n2\n3\n", "a,b\n1,2\n", "[1, 2]", '{"time": [1, 2]}', "[]"])
def test_columns_and_other_json_are_of_no_tool(held, text: str) -> None:
    assert held(text) is None


def test_what_is_no_text_is_of_no_tool(tmp_path: Path) -> None:
    path = tmp_path / "results"
    path.write_bytes(b"\xff\xd8\xff\xe0\x80")
    assert results_in(path) is None


def test_a_folder_without_results_and_a_missing_file_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is a folder without results"):
        results_in(tmp_path)
    with pytest.raises(InvalidInput, match="missing cannot be read: No such file"):
        results_in(tmp_path / "missing")
    with pytest.raises(InvalidInput, match="it is a device"):
        results_in("/dev/zero")


@pytest.mark.slow
def test_too_many_benchmarks_are_refused(held) -> None:
    lines = "".join(f'{{"name": "{index}", "unit": "", "value": 1}}\n' for index in range(10_001))
    with pytest.raises(InvalidInput, match="more than 10,000 benchmarks"):
        held(lines)


@pytest.mark.parametrize("name", ["k6.ndjson", "k6.csv", "vegeta.json", "jmeter.csv"])
def test_an_unfinished_last_line_is_told_and_not_used(held, name: str) -> None:
    text = (DATA / name).read_text()
    whole = {each.name: each for each in held(text)}
    for each in held(text[:-4]):
        assert [notice.code for notice in each.notices][-1] is Code.UNFINISHED_LINE
    n = sum(round_.n_readings for each in held(text[:-4]) for round_ in each.rounds)
    assert n in range(sum(r.n_readings for each in whole.values() for r in each.rounds) - 1, 10**6)


@pytest.mark.parametrize("name", ["k6.csv", "jmeter.csv", "vegeta.csv", "hyperfine-2.0.0.csv"])
def test_a_row_with_more_or_fewer_cells_is_an_error_with_its_line(held, name: str) -> None:
    first, second, third, *rest = (DATA / name).read_text().splitlines(keepends=True)
    for row in (third.replace("\n", ",1\n"), third.partition(",")[0] + ",2,3\n"):
        with pytest.raises(InvalidInput, match=r"results line 3 has \d+ cells, expected \d+"):
            held("".join([first, second, row, *rest]))


def test_our_own_record_is_read_as_it_is(held) -> None:
    import benchrigor as br  # noqa: PLC0415  # only here

    session = br.Session(br.Options(max_rounds=3), seed=1)
    record = session.run(SyntheticWorkload(seed=1))
    (found,) = held(record.to_dict())
    assert isinstance(found, RunRecord)
    assert found.estimate() == record.estimate()
    data = {**record.to_dict(), "schema": 99}
    with pytest.raises(InvalidInput, match="results: record has schema 99"):
        held(data)


NASTY = ["<script>alert(1)</script>", "a|b", 'quo"te', "two\nlines", "\u202egnp.exe", "\x1b[31m"]


@pytest.mark.parametrize("name", NASTY)
def test_names_stay_as_they_are_and_are_escaped_when_shown(held, name: str) -> None:
    (found,) = held({"results": [{"command": name, "times": [1.0, 2.0]}]})
    assert found.name == name
    assert not {"\n", "\x1b", "\u202e"} & set(repr(found))
    assert all(isinstance(each, Round) for each in found.rounds)


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


def test_each_of_two_benchmarks_of_one_name_can_be_chosen(tmp_path: Path, cli) -> None:
    benchmark = {"mode": "avgt", "benchmark": "a", "primaryMetric": {"scoreUnit": "s/op"}}
    data = [
        {**benchmark, "threads": n, "primaryMetric": {"scoreUnit": "s/op", "rawData": [[n, n + 1]]}}
        for n in (1, 8)
    ]
    path = tmp_path / "jmh.json"
    path.write_text(json.dumps(data))
    for n, level in ((1, "1.5"), (8, "8.5")):
        told = cli("analyze", path, "--column", f"a avgt (threads={n})", "--json")
        assert f'"value": {level}' in told.stdout


@pytest.mark.parametrize("end", ["\n", "", "\n\n"])
@pytest.mark.parametrize("indent", [None, 2])
def test_documents_one_after_another_are_read(held, end: str, indent: int | None) -> None:
    documents = ({"results": [result(name)]} for name in ("a", "b", "a"))
    texts = [json.dumps(each, indent=indent) + end for each in documents]
    assert [each.name for each in held("".join(texts))] == ["a", "b", "a #2"]
    with pytest.raises(InvalidInput, match="document 2 is of no known tool"):
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
def test_text_above_the_data_is_left_out_and_said_to_be(held, above: str, name: str) -> None:
    text = (DATA / name).read_text()
    if "timeStamp" in text:  # a long file is read by its beginning
        text += text[text.index("\n") + 1 :] * 12
    whole, found = held(text), held(above + text)
    assert [each.name for each in found] == [each.name for each in whole]
    for each in found:
        assert f"{len(above.splitlines())} lines above" in each.notices[-1].sentence
        assert each.notices[-1].code is Code.NOT_READ


def test_a_single_object_is_a_reading(held) -> None:
    (found,) = held({"name": "a", "unit": "s", "value": 1.5})
    assert found.rounds[0].unit_readings["value"].tolist() == [1.5]
