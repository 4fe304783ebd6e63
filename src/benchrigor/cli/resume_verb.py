"""``benchrigor resume``: take up a run that was cut off."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from benchrigor.cli import options as shared
from benchrigor.cli.driving import drive_and_print, log_option, logged_to
from benchrigor.cli.record_kinds import is_special, module_for
from benchrigor.cli.targets import workload_of
from benchrigor.cli.verb_help import Verb
from benchrigor.errors import InvalidInput
from benchrigor.model import Progress, StopReason
from benchrigor.model.checks import refuse
from benchrigor.model.run import AGAIN, PAIR, PART_OF
from benchrigor.session import Session


@click.command(cls=Verb)
@shared.run_id_argument
@shared.setting("budget_s", usual="as in the run", default=None)
@shared.settings("max_rounds", "budget_readings")
@log_option
@shared.store_option
@shared.details_option
@shared.json_option
def resume(run_id: str, *, log: Path | None, **limits: Any) -> None:
    """Take up a run that was killed, stopped or ran out of budget.

    The beginning of RUN_ID is enough. Finished rounds count, each once. Limits are as in the
    run unless new ones are given, and are meant for the whole run, finished rounds included.

    \b
    Examples:
      benchrigor resume 3f2a
      benchrigor resume 3f2a --budget 5m
    """  # noqa: D301  # click wants the backspace itself
    opened = shared.existing_store()
    before = opened.load(run_id)
    if PAIR in before.subject:
        again = before.subject.get(AGAIN) or "benchrigor ab"
        raise InvalidInput(
            f"run {before.run_id} is one side of a comparison: both go on in turn, with: {again}"
        )
    if PART_OF in before.subject:
        whole = before.subject[PART_OF]
        raise InvalidInput(
            f"run {before.run_id} is a part of run {whole}, which goes on with: "
            f"{shared.hint('resume', whole)}"
        )
    if is_special(before):
        special, budget_s = module_for(before), limits.pop("budget_s")
        refuse(
            f"{name} is given, and {before.run_id} is {special.noun_of(before)}: expected --budget"
            for name, limit in limits.items()
            if limit is not None
        )
        no_limit = None if budget_s == math.inf else budget_s
        budget = {} if budget_s is None else {"budget_s": no_limit}
        special.resume(before, opened, budget)
    workload = workload_of(before)
    new = {name: limit for name, limit in limits.items() if limit is not None}
    told = before.options
    if told.pieces > 1 and "budget_s" in new:  # further pieces as long as those there are
        new["pieces"] = max(1, round(told.pieces * new["budget_s"] / told.budget_s))
    options = replace(told, **new, target_given="target" in new or told.target_given)

    def begin(progress: Callable[[Progress], object]) -> Session:
        session = Session.resume(opened, run_id, options=options, progress=progress)
        ended = session.decision.reason if session.decision else None
        if ended is not None and ended is not StopReason.SATISFIED:
            raise InvalidInput(
                f"run {before.run_id} has nothing left to spend ({ended.replace('-', ' ')}): "
                "give it more with --budget, --max-rounds or --max-readings"
            )
        return session

    with logged_to(log):
        drive_and_print(begin, workload)
