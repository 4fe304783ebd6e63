"""What a file says of failed runs reaches every verb, and errors are never called faster."""

import json
from pathlib import Path

import numpy as np
import pytest

import benchrigor as br
from benchrigor.errors import NotComparable
from benchrigor.model import Code
from benchrigor.report.writers.formats import write_records
from benchrigor.testing import SyntheticWorkload

ANSWER_MS = {"good": 400.0, "some": 380.0, "fail": 20.0}
FAILED = {"good": 0, "some": 24, "fail": 80}  # of 80


def jmeter(milliseconds, failed):
    head = "timeStamp,elapsed,label,responseCode,success"
    rows = (
        f"{1795200000000 + index},{each:.0f},home,{503 if index < failed else 200},"
        f"{'false' if index < failed else 'true'}"
        for index, each in enumerate(milliseconds)
    )
    return "\n".join([head, *rows, ""])


def vegeta(milliseconds, failed):
    rows = (
        {
            "attack": "a",
            "seq": index,
            "code": 503 if index < failed else 200,
            "timestamp": "2026-11-27T20:00:00Z",
            "latency": int(each * 1e6),
            "error": "503" if index < failed else "",
        }
        for index, each in enumerate(milliseconds)
    )
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def hyperfine(milliseconds, failed):
    times = [each / 1e3 for each in milliseconds]
    codes = [int(index < failed) for index in range(len(times))]
    return json.dumps({"results": [{"command": "curl", "times": times, "exit_codes": codes}]})


TOOLS = {"jmeter": jmeter, "vegeta": vegeta, "hyperfine": hyperfine}


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Write the results of a tool into this folder; return their files by name."""
    monkeypatch.chdir(tmp_path)

    def load(tool="jmeter"):
        for name, level in ANSWER_MS.items():
            milliseconds = np.random.default_rng(1).normal(level, level / 20, 80)
            path = tmp_path / f"{name}.result"
            path.write_text(TOOLS[tool](milliseconds.tolist(), FAILED[name]))
        return {name: f"{name}.result" for name in ANSWER_MS}

    return load


@pytest.mark.parametrize("tool", TOOLS)
def test_a_side_of_errors_has_no_verdict(cli, strict, load, tool):
    files = load(tool)
    for sides in (["good", "fail"], ["fail", "good"], ["good", "some", "fail"]):
        result = cli("compare", *(files[name] for name in sides), "--json")
        assert result.exit_code == 8
        message = strict(result.stdout)["error"]["message"]
        assert "100% failed (80 of 80" in message
        assert str(files["fail"]) in message
    (good,), (fail,) = (br.read_results(files[name]) for name in ("good", "fail"))
    with pytest.raises(NotComparable, match="candidate: 100% failed"):
        br.compare_runs(good, fail)


@pytest.mark.parametrize("tool", TOOLS)
def test_a_side_with_some_errors_has_a_verdict_that_names_it(cli, strict, load, tool):
    files = load(tool)
    page = " ".join(cli("compare", files["good"], files["some"], "--markdown", "-").stdout.split())
    assert "some.result: 30%" in page.replace("\\", "")
    page = " ".join(cli("compare", files["good"], files["some"]).stdout.split())
    assert "some.result: 30%" in page
    found = strict(cli("compare", files["good"], files["some"], "--json").stdout)
    codes = [each["code"] for each in found["comparison"]["notices"]]
    assert codes.count("failed-runs") == 1


def k6(answers):
    """Return the points of requests: status, and milliseconds."""
    points = (
        (metric, value, {"method": "GET", "name": "http://a/", "status": status})
        for status, each in answers
        for metric, value in (("http_req_duration", each), ("http_req_failed", status == "503"))
    )
    return "".join(
        json.dumps({"metric": metric, "type": "Point", "data": {"value": value, "tags": tags}})
        + "\n"
        for metric, value, tags in points
    )


def k6_table(answers):
    head = "metric_name,timestamp,metric_value,method,name,status"
    rows = (
        f"{metric},1795200000,{value},GET,http://a/,{status}"
        for status, each in answers
        for metric, value in (("http_req_duration", each), ("http_req_failed", status == "503"))
    )
    return "\n".join([head, *(row.replace("True", "1").replace("False", "0") for row in rows), ""])


@pytest.mark.parametrize("write", [k6, k6_table])
@pytest.mark.parametrize(("share", "code"), [(9, 8), (10, 8), (5, 0), (0, 0)])
def test_answers_among_errors_have_no_verdict(write, share, code, cli, tmp_path):
    """Of ten requests of k6 the share failed; the answers have a name of their own."""
    times = np.random.default_rng(1).normal(12.0, 0.5, 200).tolist()
    for name, failed in (("good", 0), ("bad", share)):
        statuses = ("503" if k % 10 < failed else "200" for k in range(200))
        (tmp_path / name).write_text(write(list(zip(statuses, times, strict=True))))
    good, bad = tmp_path / "good", tmp_path / "bad"
    for sides in ((good, bad), (bad, good)):
        result = cli("compare", *sides)
        said = " ".join((result.stdout + result.stderr).split())
        assert result.exit_code == code
        assert (f"{share}0% failed ({20 * share} of 200" in said) == (share > 0)


def test_suites_name_the_file(cli, load):
    files = load()
    result = cli("compare", files["good"], files["some"], "--filter", "home")
    assert "30% failed" in " ".join(result.stdout.split())
    result = cli("compare", files["good"], files["fail"], "--filter", "home")
    assert result.exit_code == 8
    assert "100% failed" in " ".join(result.stdout.split())


@pytest.mark.parametrize("verb", ["analyze", "explain", "plan", "changes", "show"])
def test_verbs_of_one_file_say_the_share(cli, load, verb):
    some = load()["some"]
    if verb == "show":
        br.read_results(some)[0].save("saved.json")
        some, verb = "saved.json", "explain"
    assert "30% failed (24 of 80" in " ".join(cli(verb, some).stdout.split())


@pytest.mark.parametrize("verb", ["plan", "changes"])
def test_json_of_one_file_has_the_notice(cli, strict, load, verb):
    found = strict(cli(verb, load()["some"], "--json").stdout)
    notices = found["plan"]["notices"] if verb == "plan" else found["notices"]
    assert "failed-runs" in [each["code"] for each in notices]


@pytest.mark.parametrize("to", ["pyperf", "csv", "bencher", "github"])
def test_what_is_converted_says_it(cli, load, tmp_path, to):
    some = load()["some"]
    result = cli("convert", some, tmp_path / "out", "--to", to)
    assert result.exit_code == 0
    assert "30% failed (24 of 80" in result.stderr
    assert any("30% failed" in told for told in write_records(br.read_results(some), to).remarks)


@pytest.mark.parametrize(("name", "code"), [("some", 0), ("fail", 8)])
def test_what_is_converted_to_pyperf_is_no_healthy_side(cli, load, tmp_path, name, code):
    files = load()
    for again in ("once.json", "twice.json"):
        assert cli("convert", files[name], again).exit_code == 0
        files[name] = again
    assert cli("convert", files["good"], "good.json").exit_code == 0
    (bad,) = br.read_results("twice.json")
    assert f"{FAILED[name] / 80:.0%} failed ({FAILED[name]} of 80" in str(bad.session_notices[0])
    result = cli("compare", "good.json", "twice.json")
    assert result.exit_code == code
    assert "% failed" in result.stdout + result.stderr
    assert br.read_results("good.json")[0].session_notices == ()


@pytest.mark.parametrize("to", ["csv", "bencher", "github"])
def test_errors_are_not_converted_to_what_cannot_say_so(cli, load, tmp_path, to):
    result = cli("convert", load()["fail"], tmp_path / "out", "--to", to)
    assert result.exit_code == 8
    assert "100% failed" in " ".join(result.stderr.split())
    assert "to pyperf" in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("told", ['{"code": 1}', "[1", '[{"code": "too-wide"}]', "[3]", ""])
def test_warnings_in_metadata_that_are_damaged_are_named(cli, load, told):
    assert cli("convert", load()["some"], "some.json").exit_code == 0
    suite = json.loads(Path("some.json").read_text())
    suite["benchmarks"][0].setdefault("metadata", suite["metadata"])
    for part in (suite["metadata"], suite["benchmarks"][0]["metadata"]):
        part.update({"benchrigor_warnings": told} if "benchrigor_warnings" in part else {})
    Path("some.json").write_text(json.dumps(suite))
    with pytest.raises(br.InvalidInput, match=r"some\.json"):
        br.read_results("some.json")


def test_other_warnings_of_a_side_are_told_too():
    """A run that went on after its hook failed, for one."""

    def run(seed, *notices):
        session = br.Session(br.Options(rounds="restarted", max_rounds=20), seed=seed)
        for notice in notices:
            session.note(notice)
        return session.run(SyntheticWorkload(mean=1.0, restarted=True, seed=seed))

    bad = run(2, br.Notice.warning(Code.HOOK_FAILED, "The hook after raised ValueError: x"))
    for sides in ((run(1), bad), (bad, run(1))):
        found = br.compare_runs(*sides)
        (told,) = (each for each in found.notices if each.code is Code.HOOK_FAILED)
        assert told.sentence.endswith("ValueError: x")


def test_an_exported_summary_has_the_notice(cli, load):
    assert cli("export", load()["some"], "-o", ".").exit_code == 0
    assert "failed-runs" in Path("summary.csv").read_text()
