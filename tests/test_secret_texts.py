"""Secrets in free text: only they are replaced, and all else stays, character by character."""

import re

import pytest

from benchrigor.errors import InvalidInput, WorkloadFailed, failed
from benchrigor.model import Code, Notice
from benchrigor.secret_texts import HIDDEN, Veiled, hide_in_text, hide_in_words, hide_values
from benchrigor.workbench.data import LoadResult

S = "S3cr3tV"

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
]

HARMLESS = [
    "f() got an unexpected keyword argument 'password'",
    "KeyError: 'token'",
    "password: must be 8 characters long",
    "--token is missing",
    "argument --password: expected one argument",
    "package.session: the fresh interpreter exited with code 1",
    "usage: tool --password\nerror: it isn't 'given'",
    "it's 5% of '--max-tokens 9', don't mind the \\n \"quotes\"",
]


@pytest.mark.parametrize("text", TEXTS)
def test_only_the_secrets_of_a_text_are_replaced(text):
    hidden = re.sub("<.*?>", HIDDEN, text)
    assert hide_in_text(text.replace("<", "").replace(">", "")) == hidden
    assert hide_in_text(hidden) == hidden


@pytest.mark.parametrize("text", HARMLESS)
def test_other_texts_stay_as_they_are(text):
    assert hide_in_text(text) == text


def test_what_is_told_of_an_error_holds_no_secret():
    error = ValueError(f"GET https://u:{S}@h/?token={S}")
    told = [
        WorkloadFailed(f"f raised {error}", f"  | {error}"),
        InvalidInput([f"x is {error}", f"y is {error}"]),
        failed("f", error),
        failed("f", ValueError("x " * 990 + f"https://u:{S * 20}@h")),
    ]
    notice = Notice.warning(Code.HOOK_FAILED, f"The hook f raised {error}")
    result = LoadResult(sent=3, failed=3, failures={f"{error}1": 1, f"{error}2": 2})
    for shown in (*map(str, told), *map(repr, told), notice.sentence, str(result.failures)):
        assert S[:4] not in shown
        assert "https" in shown or shown.endswith(("x…", "x…')"))
    assert told[1].problems[1] == "y is GET https://__hidden__@h/?token=__hidden__"
    assert [*result.failures.values()] == [3]


def test_a_veiled_argument_is_shown_as_it_says():
    words = ["tool", Veiled(f"a {S}", "a __hidden__"), Veiled(S)]
    assert words == ["tool", f"a {S}", S]
    assert hide_in_words(words) == ["tool", "a __hidden__", HIDDEN]
    assert hide_values(f"no {S} in {S}s", words) == f"no __hidden__ in {S}s"


def test_secrets_of_arguments_are_hidden_where_they_stand_bare():
    words = ["curl", f"https://me:{S}@h/", "-H", "Authorization: Bearer abcde"]
    assert hide_values(f"{S}: wrong, abcde too", words) == "__hidden__: wrong, __hidden__ too"
