"""What only a shell carries out is refused before anything runs, wherever a text is a command."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchrigor.model.shell_words import words_of

SHORT = ("--max-rounds", "2", "--no-store")
REVISIONS = ("ab", "--rev", "one", "--rev", "two", "--build")
MAP = """
[factors.n]
levels = [1, 2]
[server]
configure = 'touch ran{n}'
[response]
command = 'true {n} | touch ran'
"""
TEXTS = [
    *("touch ran && sleep .2", "touch ran||true", "touch ran | cat", "touch ran; true"),
    *("touch ran < in", "touch ran 2>&1", "touch ran &", "touch ran $(date)", "touch ran `date`"),
    *('touch ran "at $(date)"', "touch ran\ntrue", "JOBS=2 touch ran", "_j='2 3' touch ran"),
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    "words",
    [
        ("run", *SHORT, "TEXT"),
        ("ab", "--no-store", "TEXT", "true"),
        ("ab", "--no-store", "true", "TEXT"),
        (*REVISIONS, "TEXT", "true"),
        (*REVISIONS, "touch ran", "TEXT"),
        ("commands", *SHORT, "true", "TEXT"),
        *(("commands", *SHORT, place, "TEXT", "true") for place in ("--setup", "--prepare")),
        *(("commands", *SHORT, place, "TEXT", "true") for place in ("--conclude", "--cleanup")),
    ],
)
def test_words_of_a_shell_are_refused_before_anything_runs(cli, words, text):
    result = cli(*(text if word == "TEXT" else word for word in words))
    assert result.exit_code == 2, result.output
    assert "--shell" in result.stderr
    assert not Path("ran").exists()


def test_texts_of_side_systems_are_held_to_the_same(cli):
    pytest.importorskip("benchrigor.workbench")
    Path("map.toml").write_text(MAP)
    search = ("peak", "--url", "http://127.0.0.1:1/", "--p95", "50ms")
    for words in (
        *((*search, place, TEXTS[0], "--dry-run") for place in ("--prepare", "--recover")),
        ("peak", "--p95", "50ms", TEXTS[0]),
        (*search, "--host", "elm", "--prefix", "ssh {host} | cat", "--dry-run"),
        ("map", "map.toml"),
    ):
        assert cli(*words).exit_code == 2
        assert not Path("ran").exists()
    assert cli("map", "map.toml", "--dry-run", "--shell").exit_code == 0


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
    words = done.stdout.split("\0")[:-1]
    assert words_of(text) == words


@pytest.mark.parametrize(
    "words",
    [
        ("run", *SHORT, "--shell", "printf x | cat >> ran && test -s ran"),
        ("ab", "--no-store", "--budget", ".5", "--shell", "printf x >> ran", "true < ran || true"),
        ("commands", *SHORT, "--shell", "--prepare", "true && printf x >> ran", "true; true"),
    ],
)
def test_a_shell_reads_them_if_it_is_asked_to(cli, words):
    result = cli(*words)
    assert result.exit_code in {0, 3, 4, 7}, result.output  # few runs may give no number
    assert set(Path("ran").read_text()) == {"x"}


@pytest.mark.parametrize("words", [("--", "echo"), ("echo",)])
def test_words_that_are_given_one_by_one_are_taken_as_they_are(told, words):
    document = told("run", *SHORT, "--read", "n=regex:&& ([0-9])", *words, "a", "&&", "7")
    assert document["analyses"][0]["metric"]["name"] == "n"
