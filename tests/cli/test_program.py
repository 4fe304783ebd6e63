"""The command line as a program of its own: how it ends."""

import sys

import pytest

from benchrigor import __main__ as program
from benchrigor.cli import leaving


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [(SystemExit(3), 3, ""), (SystemExit(None), 0, ""), (KeyError("x"), 1, "KeyError: 'x'")],
)
def test_the_program_ends_with_its_code_whatever_is_raised(
    monkeypatch, capsys, error, code, printed
):
    def fail():
        raise error

    ended = []
    monkeypatch.setattr(program, "main", fail)
    monkeypatch.setattr(leaving, "end_program", ended.append)
    monkeypatch.setattr(program.faulthandler, "enable", lambda **_: None)
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    with pytest.raises(SystemExit):
        program.run_program()
    assert ended == [code]
    assert printed in capsys.readouterr().err
