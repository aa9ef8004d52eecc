"""`punie changes verify`: holds the receipts of a commit against the audit trail of this machine."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from punie.adapters.git.repository import DulwichRepository
from punie.application.sessions.changed_files import shown_name
from punie.application.tools.files.proving import Proof, prove
from punie.commands.permissions.kept import kept_books
from punie.commands.running import Exit, command_environ, directory_of, told, wrong
from punie.domain.errors import ToldToModel
from punie.domain.values.display import display_exact

MOST_ROWS = 1_000_000


def run_verify(names: Sequence[str], cwd: str, *, as_json: bool) -> int:
    """Print what is proven of a commit's files; returns the exit code: 1 where anything is refuted."""
    if len(names) > 1:
        return wrong("`punie changes verify` takes one commit.")
    directory_of(cwd)
    environ = command_environ()
    audit = kept_books(environ).audit

    async def run() -> Proof:
        made = await DulwichRepository(cwd, (cwd,)).commit_files(*(names or ("HEAD",)))
        report = await audit.verify()
        fault = next((one.fault for one in (report, *report.others) if one.fault), None)
        return prove(made, await audit.latest(MOST_ROWS), fault)

    try:
        proof = anyio.run(run)
    except ToldToModel as error:
        said = f"{display_exact(str(error))} Verified is a commit that carries a receipt, in its own repository."
        return wrong(said, Exit.FAILED)
    value = {
        "commit": proof.commit, "session": proof.session, "model": proof.model, "said": proof.said,
        "files": [{"path": file.path, "standing": file.standing, "why": file.why} for file in proof.files],
    }  # fmt: skip
    return told(value, proof_text(proof), as_json=as_json, exit_code=Exit.FAILED if proof.refuted else Exit.DONE)


def proof_text(proof: Proof) -> str:
    """The commit, and its files with the standing of each, safe to show."""
    lines = [f"commit {proof.commit}"]
    lines += [f"session {shown_name(proof.session)}, model {shown_name(proof.model)}"] if proof.model else []
    lines += [shown_name(proof.said)] if proof.said else []
    for file in proof.files:
        why = f" ({shown_name(file.why)})" if file.why and file.why != proof.said else ""
        lines.append(f"  {shown_name(file.path) or '(no files)'}: {file.standing}{why}")
    return "\n".join(lines) + "\n"
