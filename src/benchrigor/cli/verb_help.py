"""The content of ``--help``: verbs by task, their questions, and the options most used."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from typing import Any

import click

from benchrigor.safe_text import page

# Help shows these in this order, without loading the verbs.
TASKS = {
    "Measure": {
        "run": "How long does a command or a function take?",
        "timeit": "How long does a statement of Python take?",
        "resume": "How do I continue a run that was stopped or ran out of budget?",
        "plan": "How much must be measured to see a change?",
    },
    "Compare": {
        "ab": "Is the new function, command or revision better than the old one?",
        "commands": "Which of these commands is the fastest?",
        "compare": "Which of these stored runs or files is better?",
        "gate": "Did a change make any benchmark of a suite slower?",
    },
    "Servers": {
        "peak": "How much load does a server take before it breaks its limits?",
        "map": "How does the answer depend on the configuration?",
        "rate": "How fast could a stage go if it never waited?",
    },
    "Analyse": {
        "list": "Which runs are stored?",
        "show": "What did a stored run find?",
        "report": "How do I send a colleague what was found?",
        "explain": "How did the number of a stored run come about?",
        "export": "How do other programs read a run?",
        "convert": "How do other benchmark tools read my results?",
        "analyze": "How large is the mean or a quantile of recorded readings?",
        "changes": "When did recorded readings change, and when were they stable?",
        "interference": "How much of a run's time did other work take?",
        "track-record": "How often did the intervals of stored runs hold?",
    },
    "Machine": {
        "doctor": "Is this machine fit to be measured on?",
        "agent": "How do other machines see the state of this one?",
        "watch": "In which state are the nodes that run an agent?",
    },
}
VERBS = {name: question for verbs in TASKS.values() for name, question in verbs.items()}
HOMES = {
    "cli.commands_verb": "commands",
    "cli.comparison_verbs": "ab compare",
    "cli.fitness_verbs": "doctor track-record",
    "cli.list_verb": "list",
    "cli.measuring_verbs": "run timeit resume",
    "cli.readings_verbs": "analyze changes plan",
    "cli.stored_verbs": "show report explain export convert",
    "gate.gate_verb": "gate",
    "instrument.node_verbs": "agent watch",
    "interference.interference_verb": "interference",
    "queues.rate_verb": "rate",
    "workbench.map_verb": "map",
    "workbench.peak_verb": "peak",
}
"""The modules of the verbs, those of the side systems too."""

_SHOWS_ALL = "benchrigor.help_all"
_WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|\S)+""")  # of a command, with what quotes hold
_LEAST_WIDTH = 50  # of the formatter of click: narrower lines would wrap in the terminal


class _Formatter(click.HelpFormatter):
    """Keeps to narrow terminals, too."""

    def __init__(
        self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None
    ) -> None:
        room = shutil.get_terminal_size().columns - 2
        super().__init__(
            indent_increment, max(room, 20) if room < _LEAST_WIDTH else width, max_width
        )

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write terms and their texts in two columns."""
        super().write_dl(rows, min(col_max, self.width * 2 // 5), col_spacing)

    def write_text(self, text: str) -> None:
        """Write text; commands of examples go on in a next line as a shell reads it."""
        super().write_text(text)
        prose, head, examples = self.buffer[-2].partition("Examples:\n")
        parts = (part for line in examples.split("\n") for part in self._fold(line))
        self.buffer[-2] = prose + head + page(parts)

    def _fold(self, line: str) -> list[str]:
        if len(line) <= self.width + 2:  # of the terminal
            return [line]
        begin = line[: len(line) - len(line.lstrip())]
        lines = []
        for word in _WORD.findall(line.removesuffix("\\")):
            if len(f"{begin} {word} \\") > self.width + 2 and begin.strip():
                lines.append(f"{begin} \\")
                begin = " " * (len(line) - len(line.lstrip()) + 2)
            begin += f" {word}" if begin.strip() else word
        return [*lines, begin + " \\" * line.endswith("\\")]


class HelpContext(click.Context):
    """A context that wraps help at the width of the terminal."""

    formatter_class = _Formatter


def _show_all(context: click.Context, _option: click.Parameter, is_asked: bool) -> None:
    if is_asked and not context.resilient_parsing:
        from benchrigor.cli.output import say  # noqa: PLC0415  # it loads the model

        context.meta[_SHOWS_ALL] = True
        say(context.get_help())
        context.exit()


_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    hidden=True,  # the last line of the help names it if it shows more
    callback=_show_all,
)


class Verb(click.Command):
    """A verb with a question at the beginning of its help.

    ``--help`` shows the options that ``usual`` names, as they are typed, and ``--help-all`` the
    others too. Without ``usual`` both show all.
    """

    context_class = HelpContext

    def __init__(self, *args: Any, usual: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.usual = usual.split()

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the arguments and options, with --help and --help-all."""
        return [*super().get_params(ctx), _HELP_ALL]

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the question of the verb, and its text."""
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(VERBS[str(self.name)])
        super().format_help_text(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usual options, and the others if they are asked for."""
        usual, others = list[tuple[str, str]](), list[tuple[str, str]]()
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (row := param.get_help_record(ctx)):
                is_usual = not self.usual or {"--help", *self.usual}.intersection(param.opts)
                (usual if is_usual else others).append(row)
        with formatter.section("Options"):
            formatter.write_dl(usual)
        if others and ctx.meta.get(_SHOWS_ALL):
            with formatter.section("Further options"):
                formatter.write_dl(others)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Say how all options are shown, if some are not."""
        if self.usual and not ctx.meta.get(_SHOWS_ALL):
            formatter.write(f"\nAll options: benchrigor {self.name} --help-all\n")
