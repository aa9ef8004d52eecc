"""The doctor's look at pipelines: those that are left out, and why."""

from __future__ import annotations

from collections.abc import Sequence

from punie.bootstrap.pipeline_files import SHIPPED, shelf_of
from punie.bootstrap.settings.files import pipelines_folder
from punie.commands.doctor.report import Check
from punie.commands.doctor.side_by_side import Case


def pipelines(case: Case) -> Sequence[Check]:
    """The user's, the project's and Punie's own; nothing of them is run."""
    shelf = shelf_of(str(pipelines_folder(case.environ)), case.cwd)
    problems = list(shelf.problems())
    if problems:
        more = f"; and {len(problems) - 1} more" if len(problems) > 1 else ""
        fix = "punie pipelines check FILE shows all that is wrong with it."
        return [Check("pipelines", ok=False, detail=f"{problems[0]}{more}", fix=fix)]
    written = [pipeline.name for pipeline in shelf.pipelines if pipeline.place != SHIPPED]
    shipped = len(shelf.pipelines) - len(written)
    return [
        Check(
            "pipelines", ok=True, detail=f"yours and the project's: {', '.join(written) or 'none'}; {shipped} shipped"
        )
    ]
