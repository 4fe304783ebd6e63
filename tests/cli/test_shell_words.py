"""What only a shell carries out is refused before anything runs, wherever a text is a command."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchrigor.clocks import WallClock
from benchrigor.errors import InvalidInput
from benchrigor.model.shell_words import words_of
from benchrigor.testing import FakeClock
from benchrigor.workbench.maps.map_file import read_map
from benchrigor.workloads import CommandWorkload

SHORT = ("--max-rounds", "2", "--no-store")
SHORT_PAIR = ("--no-store", "--budget", ".5")
SEARCH = ("peak", "--url", "http://127.0.0.1:1/", "--p95", "50ms")
MAP = """
[factors.n]
levels = [1, 2]
[server]
configure = 'touch ran{n}'
[response]
command = 'true {n} | touch ran'
"""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("touch ran && sleep .2", "&&"),
        ("touch ran||true", "||"),
        ("touch ran | cat", "|"),
        ("touch ran; true", ";"),
        ("touch ran < in", "<"),
        ("touch ran 2>&1", ">"),
        ("touch ran &", "&"),
        ("touch ran $(date)", "$("),
        ('touch ran "at $(date)"', "$("),
        ("touch ran `date`", "`"),
        ("touch ran\ntrue", "a line break"),
        ("JOBS=2 touch ran", "JOBS="),
        ("_j='2 3' touch ran", "_j="),
    ],
)
@pytest.mark.parametrize(
    "words",
    [
        ("run", *SHORT, "TEXT"),
        ("ab", "--no-store", "TEXT", "true"),
        ("ab", "--no-store", "true", "TEXT"),
        ("ab", "--rev", "one", "--rev", "two", "--build", "TEXT", "true"),
        ("ab", "--rev", "one", "--rev", "two", "--build", "touch ran", "TEXT"),
        ("commands", *SHORT, "true", "TEXT"),
        *(("commands", *SHORT, place, "TEXT", "true") for place in ("--setup", "--prepare")),
        *(("commands", *SHORT, place, "TEXT", "true") for place in ("--conclude", "--cleanup")),
        (*SEARCH, "--prepare", "TEXT"),
        (*SEARCH, "--recover", "TEXT", "--dry-run"),
        ("peak", "--p95", "50ms", "TEXT"),
    ],
)
def test_words_of_a_shell_are_refused_before_anything_runs(cli, words, text, found):
    result = cli(*(text if word == "TEXT" else word for word in words))
    assert result.exit_code == 2, result.output
    assert f": {found} is" in " ".join(result.stderr.split())
    assert "give --shell" in " ".join(result.stderr.split())
    assert not Path("ran").exists()


def test_a_map_and_a_prefix_of_hosts_are_held_to_the_same(cli):
    Path("map.toml").write_text(MAP)
    refused = cli("map", "map.toml")
    assert refused.exit_code == 2
    sentence = 'map.toml:7: response.command: | is for a shell, and no shell reads it; write ["sh"'
    assert sentence in " ".join(refused.stderr.split())
    assert cli("map", "map.toml", "--dry-run", "--shell").exit_code == 0
    read = read_map("map.toml", by_shell=True)
    assert read.response.command[:2] == ["sh", "-c"]
    assert read.life_cycle is not None
    assert read.life_cycle.configure == ("sh", "-c", "touch ran{n}")
    hosts = cli(*SEARCH, "--host", "elm", "--prefix", "ssh {host} | cat", "--dry-run")
    assert hosts.exit_code == 2
    assert "--prefix: |" in hosts.stderr


@pytest.mark.parametrize(
    "text",
    [
        'python3 -c "a=1; print(a)"',
        "awk '{print $1; exit}'",
        r"echo a\;b \&\& \$\(c\) \<",
        "echo 'a && b' \"c | d > e\" ''",
        r'echo "\$(date) \` \\ \" \n"',
        "env JOBS=2 make",
        "make JOBS=2",
        "'JOBS=2' a",
        "a \\\n  b",
        "\n a b\n",
        'echo a$ it"\'"s',
    ],
)
def test_what_is_quoted_or_escaped_is_read_as_a_shell_reads_it(text):
    printed = f"printf '%s\\0' {text.strip()}"
    done = subprocess.run(["sh", "-c", printed], capture_output=True, check=True, text=True)
    assert words_of(text) == done.stdout.split("\0")[:-1]


@pytest.mark.parametrize(
    "words",
    [
        ("run", *SHORT, "--shell", "printf x | cat > ran && test -s ran"),
        ("ab", *SHORT_PAIR, "--shell", "test -s ran || echo x > ran", "true < ran || true"),
        ("commands", *SHORT, "--shell", "--prepare", "true && echo x > ran", "true; true"),
    ],
)
def test_a_shell_reads_them_if_it_is_asked_to(cli, words):
    result = cli(*words)
    assert result.exit_code in {0, 3, 4, 7}, result.output  # few runs may give no number
    assert Path("ran").read_text().strip() == "x"


@pytest.mark.parametrize("words", [("--", "echo"), ("echo",)])
def test_words_that_are_given_one_by_one_are_taken_as_they_are(cli, words):
    result = cli("run", *SHORT, "--read", "n=regex:&& ([0-9])", *words, "a", "&&", "7")
    assert result.exit_code == 0, result.output
    assert "n" in result.stdout


def test_texts_in_a_program_are_refused_with_the_cure():
    for argv, hooks in (("a && b", {}), (["true"], {"prepare": "a && b"})):
        with pytest.raises(InvalidInput, match="&&"):
            CommandWorkload(argv, hooks=hooks, clock=WallClock())
    with pytest.raises(InvalidInput, match=r"hooks\['setup'\]"):
        CommandWorkload(["true"], hooks={"setup": "make x"}, clock=FakeClock())
