"""What a plan does to the private rows, in exact numbers for the curator alone."""

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from dpframe import errors
from dpframe.jobs.job import Job
from dpframe.jobs.run_job import declare_plan, ledger_now, open_data, place_error
from dpframe.ledger.ledger import copy_in_memory
from dpframe.operations.diagnose import diagnose

PRIVATE = "NOT FOR PUBLICATION: exact numbers of the private rows. Nothing was charged."


def diagnose_job(job: Job) -> Mapping[str, pd.DataFrame]:
    """Read the rows of a plan, and say where each is left out; the ledger stays as it is."""
    job = replace(job, data=job.data.expanded())
    ledger = copy_in_memory(ledger_now(job, here=False))
    scan, needed = open_data(job, ledger)
    job.data.check_typed(needed)
    frame = job.data.rows(scan, needed)
    declare_plan(job, frame, ledger)
    try:
        found = diagnose(frame, job.request, part=job.options["part"])
    except errors.DPFrameError as error:
        raise place_error(job, error) from None
    return {next(iter(job.queries)): found} if job.is_alone else dict(found)


def in_lines(diagnosis: pd.DataFrame) -> list[str]:
    """Show a diagnosis: rows, their share and what they are, hints below."""
    lines = []
    above = None
    for line in diagnosis.reset_index().to_dict("records"):
        if line["part"] != above:
            above = line["part"]
            lines.append(f"  {above}")
        lines.append(f"  {line['rows']:>12,} {line['share']:>7.1%}  {line['step']}")
        if line["hint"]:
            lines.append(f"  {'':22}{line['hint']}")
    return lines
