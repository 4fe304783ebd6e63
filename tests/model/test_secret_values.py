"""Secrets in commands, headers and environment variables are told by their names and places."""

import shlex

import pytest

from benchrigor.model import Options, RunRecord
from benchrigor.model.secret_values import hide_secrets, holds_hidden
from benchrigor.secret_texts import HIDDEN

S = "S3cr3tV"

WITH_SECRETS = [
    ["curl", "-H", f"Authorization: Bearer {S}", "http://h"],
    ["curl", f"-HAuthorization: Basic {S}"],
    ["curl", f"--header=X-Api-Key: {S}"],
    ["curl", "-H", f"X-Api-Key:{S}"],
    ["curl", "-H", f"Cookie: a={S}; b={S}"],
    ["curl", "-H", f'Authorization: Digest username="x", response="{S}"'],
    ["curl", f"https://me:{S}@h/p"],
    ["curl", f"http://h/?x=1&access_token={S}&y=2"],
    ["curl", "-d", f"user=me&password={S}&x=1"],
    ["git", "clone", f"https://{S}@github.com/x"],
    ["psql", f"postgresql://u:{S}@h:5432/db?x=1"],
    ["tool", "--password", S],
    ["tool", f"--password={S} two {S}"],
    ["tool", "--api-key", S],
    ["tool", f"--db.password={S}"],
    ["tool", "--connection", f"Server=h;Uid=u;Pwd={S};"],
    ["env", f"AWS_SECRET_ACCESS_KEY={S}", "aws"],
    ["sh", "-c", f"PGPASSWORD={S} psql -h x"],
    ["sh", "-c", f"curl -H 'Authorization: Bearer {S}' http://h"],
    ["bash", "-c", f"mysql --password '{S}' -e 'select 1'"],
    ["python", "-c", f"import x; token = '{S} {S}'; x.run(token)"],
    ["http", "h", f"Authorization:Bearer {S}"],
    ["curl", f"--header=X-Forwarded-Authorization: Bearer {S}"],
    ["curl", "-H", f"apikey: {S}"],
    ["curl", f"https://h/?key={S}"],
    ["tool", "--pass", S, f"--license-key={S}"],
    ["python", "-c", f"run(['tool', '--password', '{S}'])"],
    ["env", f"DB_PASS={S}", f"SECRET_KEY_BASE={S}", f"STRIPE_KEY={S}", "serve"],
    ["sh", "-c", f"export TOKEN={S}; serve"],
    ["tool", "--password", f"-{S}"],
    ["tool", "--api-key", f"--{S}", "-v"],
    ["tool", "-token", f"-{S.lower()}"],
    ["curl", f"ftp://u%3A{S}@h/"],
    ["git", "clone", f"ssh://u%3A{S}@h/"],
    ["curl", f"http://h/p;token={S};x=1"],
    ["curl", f"http://h/?a=1;key={S}"],
    ["tool", f"--password={S}("],
    ["curl", f"http://h/?token=abc({S})"],
]

WITHOUT = [
    ["gzip", "-k", "-f", "big.log"],
    ["model", "--max-tokens", "100", "--tokenizer=bpe"],
    ["tool", "--token-file", "a", "--key", "cert.pem"],
    ["tool", "--no-auth", "file", "--author", "me", "--bypass=1"],
    ["docker", "run", "-u", "1000:1000", "image"],
    ["pytest", "mypackage.auth:login"],
    ["token:parse"],
    ["sort", "-k", "2", "-u", "a.txt"],
    ["sh", "-c", "a; b | c 'd  e' \"f\" \\g"],
    ["ssh", "user@host", "http://h:80/@x"],
    ["date", "-u", "+%H:%M"],
    ["git", "clone", "ssh://git@github.com/a"],
    ["tool", "s3://bucket@region/x"],
    ["docker", "run", "-u", "www:www", "img"],
    ["ffmpeg", "-pass", "2", "--first-pass=1", "--single-pass", "file"],
    ["make", "PASS=1", "BYPASS=yes"],
    ["opt", "--pass=inline", "--pin=0-3", "--auth", "none", "--signature", "v4"],
    ["ansible", "--ask-pass", "file"],
    ["curl", "-H", "X-Request-Id: 3", "-H", "Content-Id: 3ab"],
    ["sh", "-c", "pass=1; while [ $pass -lt 9 ]; do pass=2; done"],
    ["tool", "--auth", "--verbose", "--token", "-v", "--password", "-uroot", "--secret", "--"],
    ["gcc", "--sig", "-O2", "-std=c99", "-p"],
    ["python", "-c", "it = iter('ab'); token=next(it); f(token=next(it), password=password)"],
    ["python", "-c", "g(token=self.token, secret=os.environ[x], token=tokens[0])"],
    ["python", "-c", "if token==end: pass"],
    ["python", "-c", "f = lambda token=None: token"],
    ["python", "-c", "def f(token, auth=None, pin=1): return token"],
    ["tool", "--pin", "-1", "--sig", "-0.5"],
    ["timeit", "token=next(it)"],
    ["curl", "http://h:80/a@b", "http://h:8080/?to=a@b", "mongodb://a:27017,b:27017/?x=a@b"],
    ["docker", "pull", "docker://registry:5000/image@sha256:abc"],
    ["load", "http://h:{port}/@x", "http://[::1]:80/@x", "http://h/?%61=1&max%5Ftokens=9"],
    ["ssh", "-p2222", "h"],
    ["mysql", "-p", "shop"],
    ["sshpass", "-f", "file", "ssh", "h"],
    ["sox", "a", "--lowpass", "300", "--sessions", "many", "--session-file", "f"],
    ["python", "-c", "session=requests.Session(); session.get(url)"],
    ["tool", "--license", "mit", "--psk-file", "f", "--sort-key", "name", "--public-key", "f"],
    ["docker", "pull", "redis:7@sha256:12ab", "h:5000/redis:7"],
    ["tool", "--requires", "x", "host:80", "a.py:12@h:8080", "me@host:22", "f(x):y@z(1)"],
]


@pytest.mark.parametrize("words", WITH_SECRETS, ids=shlex.join)
def test_secrets_are_hidden_in_words_and_in_a_line_of_a_shell(words):
    for command in (words, shlex.join(words)):
        hidden = hide_secrets(command)
        assert S not in str(hidden)
        assert holds_hidden(hidden)
        assert hide_secrets(hidden) == hidden
    assert hide_secrets(words)[0] == words[0]


@pytest.mark.parametrize("words", WITHOUT, ids=shlex.join)
def test_other_commands_stay_as_they_are(words):
    assert hide_secrets(words) == words
    assert hide_secrets(shlex.join(words)) == shlex.join(words)
    assert not holds_hidden(words)


def test_values_are_hidden_by_the_names_under_which_they_stand():
    subject = {
        "env": {"API_TOKEN": S, "LANG": "C"},
        "requests": [{"url": f"http://u:{S}@h/", "headers": {"X-Api-Key": S, "Accept": "*"}}],
        "picks": ["auth:ms=regex:password: (.+)"],
        "timeout_s": None,
    }
    assert hide_secrets(subject) == {
        "env": {"API_TOKEN": HIDDEN, "LANG": "C"},
        "requests": [
            {"url": f"http://{HIDDEN}@h/", "headers": {"X-Api-Key": HIDDEN, "Accept": "*"}}
        ],
        "picks": ["auth:ms=regex:password: (.+)"],
        "timeout_s": None,
    }


def test_no_record_holds_secrets_whoever_makes_it():
    record = RunRecord(
        name=f"tool --token {S}",
        options=Options(),
        metrics=(),
        seed=1,
        rounds=(),
        analyses=(),
        subject={"argv": ["tool", "--token", S]},
    )
    assert S not in str(record.to_dict())
    assert S not in str(record)
    assert record.name == f"tool --token {HIDDEN}"


@pytest.mark.slow
@pytest.mark.parametrize("text", ["a" * 50_000, "x: " * 10_000, "://" * 10_000, '"' * 10_001])
def test_long_texts_take_no_long_time(text):
    assert hide_secrets([text, text]) == [text, text]
