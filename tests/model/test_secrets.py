"""Secrets in records, commands and texts: only they are replaced, and all else stays as it is."""

import re
import shlex

import pytest

import benchrigor as br
from benchrigor.errors import InvalidInput, WorkloadFailed, failed
from benchrigor.model import Code, Notice, Options, RunRecord
from benchrigor.safe_text import Veiled, hide_values

S, HIDDEN = "S3cr3tV", "__hidden__"

WITH_SECRETS = [
    ["curl", "-H", f"Authorization: Bearer {S}", "http://h"],
    ["curl", f"-HAuthorization: Basic {S}"],
    ["curl", f"--header=X-Api-Key: {S}"],
    ["curl", "-H", f"apikey: {S}"],
    ["curl", "-H", f"X-Api-Key:{S}"],
    ["curl", "-H", f"Cookie: a={S}; b={S}"],
    ["curl", "-H", f'Authorization: Digest username="x", response="{S}"'],
    ["curl", f"https://me:{S}@h/p"],
    ["curl", f"ftp://u%3A{S}@h/"],
    ["curl", f"http://h/?x=1&access_token={S}&y=2"],
    ["curl", "-d", f"user=me&password={S}&x=1"],
    ["git", "clone", f"https://{S}@github.com/x"],
    ["git", "clone", f"ssh://u%3A{S}@h/"],
    ["psql", f"postgresql://u:{S}@h:5432/db?x=1"],
    ["tool", "--password", S],
    ["tool", f"--db.password={S}"],
    ["tool", f"--password={S} two {S}"],
    ["tool", "--api-key", S],
    ["tool", "--connection", f"Server=h;Uid=u;Pwd={S};"],
    ["env", f"AWS_SECRET_ACCESS_KEY={S}", "aws"],
    ["sh", "-c", f"curl -H 'Authorization: Bearer {S}' http://h"],
    ["sh", "-c", f"PGPASSWORD={S} psql -h x"],
    ["sh", "-c", f"export TOKEN={S}; serve"],
    ["bash", "-c", f"mysql --password '{S}' -e 'select 1'"],
    ["python", "-c", f"import x; token = '{S} {S}'; x.run(token)"],
    ["http", "h", f"Authorization:Bearer {S}"],
    ["curl", f"--header=X-Forwarded-Authorization: Bearer {S}"],
    ["curl", f"https://h/?key={S}"],
    ["tool", "--pass", S, f"--license-key={S}"],
    ["python", "-c", f"run(['tool', '--password', '{S}'])"],
    ["env", f"DB_PASS={S}", f"SECRET_KEY_BASE={S}", f"STRIPE_KEY={S}", "serve"],
    ["tool", "--password", f"-{S}"],
    ["tool", "--api-key", f"--{S}", "-v"],
    ["tool", "-token", f"-{S.lower()}"],
    ["curl", f"http://h/p;token={S};x=1"],
    ["curl", f"http://h/?a=1;key={S}"],
    ["tool", f"--password={S}("],
    ["curl", f"http://h/?token=abc({S})"],
]

WITHOUT = [
    ["gzip", "-k", "-f", "big.log"],
    ["sort", "-k", "2", "-u", "a.txt"],
    ["date", "-u", "+%H:%M"],
    ["gcc", "--sig", "-O2", "-std=c99", "-p"],
    ["model", "--max-tokens", "100", "--tokenizer=bpe"],
    ["tool", "--token-file", "a", "--key", "cert.pem"],
    ["tool", "--no-auth", "file", "--author", "me", "--bypass=1"],
    ["docker", "run", "-u", "1000:1000", "image"],
    ["docker", "run", "-u", "www:www", "img"],
    ["docker", "pull", "docker://registry:5000/image@sha256:abc"],
    ["docker", "pull", "redis:7@sha256:12ab", "h:5000/redis:7"],
    ["pytest", "mypackage.auth:login"],
    ["timeit", "token=next(it)"],
    ["token:parse"],
    ["sh", "-c", "a; b | c 'd  e' \"f\" \\g"],
    ["ssh", "user@host", "http://h:80/@x"],
    ["ssh", "-p2222", "h"],
    ["sshpass", "-f", "file", "ssh", "h"],
    ["mysql", "-p", "shop"],
    ["sox", "a", "--lowpass", "300", "--sessions", "many", "--session-file", "f"],
    ["git", "clone", "ssh://git@github.com/a"],
    ["tool", "s3://bucket@region/x"],
    ["ffmpeg", "-pass", "2", "--first-pass=1", "--single-pass", "file"],
    ["make", "PASS=1", "BYPASS=yes"],
    ["opt", "--pass=inline", "--pin=0-3", "--auth", "none", "--signature", "v4"],
    ["ansible", "--ask-pass", "file"],
    ["curl", "-H", "X-Request-Id: 3", "-H", "Content-Id: 3ab"],
    ["sh", "-c", "pass=1; while [ $pass -lt 9 ]; do pass=2; done"],
    ["tool", "--auth", "--verbose", "--token", "-v", "--password", "-uroot", "--secret", "--"],
    ["python", "-c", "it = iter('ab'); token=next(it); f(token=next(it), password=password)"],
    ["python", "-c", "g(token=self.token, secret=os.environ[x], token=tokens[0])"],
    ["python", "-c", "if token==end: pass"],
    ["python", "-c", "def f(token, auth=None, pin=1): return lambda token=None: token"],
    ["tool", "--pin", "-1", "--sig", "-0.5"],
    ["curl", "http://h:80/a@b", "http://h:8080/?to=a@b", "mongodb://a:27017,b:27017/?x=a@b"],
    ["load", "http://h:{port}/@x", "http://[::1]:80/@x", "http://h/?%61=1&max%5Ftokens=9"],
    ["python", "-c", "session=requests.Session(); session.get(url)"],
    ["tool", "--license", "mit", "--psk-file", "f", "--sort-key", "name", "--public-key", "f"],
    ["tool", "--requires", "x", "host:80", "a.py:12@h:8080", "me@host:22", "f(x):y@z(1)"],
]

TEXTS = [  # with what is secret between angles
    "raise ValueError('GET https://<u:S3cr3tV>@h/?token=<S3cr3tV> failed')",
    '    raise ValueError(f"--password <S3cr3tV> is wrong")  # it\'s late',
    "can't log in: it's --password '<S3cr3tV two>'",
    "Command '['tool', '--password', '<S3cr3tV>', '-u', 'me']' returned 1.",
    "Config(user='me', password='<S3cr3tV>', n=3)",
    "self.password = '<S3cr3tV two>'  # of the store",
    "Authorization: <Bearer S3cr3tV> was rejected",
    "X-Api-Key: <S3cr3tV> was rejected (401)",
    "Cookie: <a=S3cr3tV; b=S3cr3tV>",
    "(tool --password <S3cr3tV>) failed: `tool --token <S3cr3tV>`.",
    "'tool --password <S3>' cannot be started: No such file or directory: 'tool --password <S3>'",
    "f() got an unexpected keyword argument 'password'",
    "KeyError: 'token'",
    "password: must be 8 characters long",
    "--token is missing",
    "argument --password: expected one argument",
    "package.session: the fresh interpreter exited with code 1",
    "usage: tool --password\nerror: it isn't 'given'",
    "it's 5% of '--max-tokens 9', don't mind the \\n \"quotes\"",
]


def kept(name: str = "a", **subject: object) -> RunRecord:
    """Return a record of such a name and subject, which hides secrets whoever makes it."""
    empty = {"metrics": (), "rounds": (), "analyses": ()}
    return RunRecord(name=name, options=Options(), seed=1, subject=subject, **empty)  # type: ignore[arg-type]


@pytest.mark.parametrize("words", WITH_SECRETS, ids=shlex.join)
def test_secrets_are_hidden_in_words_and_in_a_line_of_a_shell(words):
    record = kept(shlex.join(words), argv=words)
    assert S not in str(record.to_dict())
    assert S not in str(record)
    for hidden in (record.name, " ".join(record.subject["argv"])):
        assert HIDDEN in hidden
        assert kept(hidden).name == hidden
    assert record.subject["argv"][0] == words[0]


@pytest.mark.parametrize("words", WITHOUT, ids=shlex.join)
def test_other_commands_stay_as_they_are(words):
    record = kept(shlex.join(words), argv=words)
    assert (record.name, record.subject["argv"]) == (shlex.join(words), words)


def test_values_are_hidden_by_the_names_under_which_they_stand():
    url, headers = f"http://u:{S}@h/", {"X-Api-Key": S, "Accept": "*"}
    picks = ["auth:ms=regex:password: (.+)"]
    subject = {"env": {"API_TOKEN": S, "LANG": "C"}, "picks": picks, "timeout_s": None}
    assert kept(requests=[{"url": url, "headers": headers}], **subject).subject == {
        **subject,
        "env": {"API_TOKEN": HIDDEN, "LANG": "C"},
        "requests": [
            {"url": f"http://{HIDDEN}@h/", "headers": {"X-Api-Key": HIDDEN, "Accept": "*"}}
        ],
    }


@pytest.mark.parametrize("text", ["a" * 50_000, "x: " * 10_000, "://" * 10_000, '"' * 10_001])
def test_long_texts_take_no_long_time(text):
    assert kept(text, argv=[text, text]).subject["argv"] == [text, text]


@pytest.mark.parametrize("text", TEXTS)
def test_only_the_secrets_of_a_text_are_replaced(text):
    hidden = re.sub("<.*?>", HIDDEN, text)
    for told in (text.replace("<", "").replace(">", ""), hidden):
        assert str(WorkloadFailed(told)) == re.sub(r"\n", r"\\n", hidden)


def test_what_is_told_of_an_error_holds_no_secret():
    error = ValueError(f"GET https://u:{S}@h/?token={S}")
    told = [
        WorkloadFailed(f"f raised {error}", f"  | {error}"),
        InvalidInput([f"x is {error}", f"y is {error}"]),
        failed("f", error),
        failed("f", ValueError("x " * 990 + f"https://u:{S * 20}@h")),
    ]
    notice = Notice.of(Code.HOOK_FAILED, hook="f", error="E", why_=str(error))
    for shown in (*map(str, told), *map(repr, told), notice.sentence):
        assert S[:4] not in shown
        assert "https" in shown or shown.endswith(("x…", "x…')"))
    assert told[1].problems[1].endswith("https://__hidden__@h/?token=__hidden__")


def test_failures_of_a_load_that_differ_by_secrets_are_one():
    pytest.importorskip("benchrigor.workbench")
    what = f"GET https://u:{S}@h/?token={S}"
    result = br.LoadResult(sent=3, failed=3, failures={f"{what}1": 1, f"{what}2": 2})
    assert dict(result.failures) == {f"GET https://{HIDDEN}@h/?token={HIDDEN}": 3}


def test_secrets_of_arguments_are_hidden_where_they_stand_bare():
    words = ["curl", f"https://me:{S}@h/", "-H", "Authorization: Bearer abcde"]
    assert hide_values(f"{S}: wrong, abcde", words) == "__hidden__: wrong, __hidden__"
    veiled = ["tool", Veiled(f"a {S}", "a __hidden__"), Veiled(S)]  # nothing else marks them
    assert veiled == ["tool", f"a {S}", S]
    assert hide_values(f"no {S} in {S}s", veiled) == f"no __hidden__ in {S}s"
    assert kept(argv=veiled).subject["argv"] == ["tool", "a __hidden__", HIDDEN]
