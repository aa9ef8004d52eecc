"""A program of this machine gets as much memory as its command allows (Linux, best effort)."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

from punie.adapters.local.terminals import LocalTerminals
from punie.domain.terminal import Command

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.requirement("S2-33"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds another process"),
]

# Waits until it was bounded, as the kernel's own table shows; every real program takes longer than that to start.
_TAKES_300_MB = (
    "import resource, time\n"
    "while resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY and {bounded}: time.sleep(0.001)\n"
    "x = bytearray(300 * 1024 * 1024); print('got it')"
)


@pytest.mark.parametrize(("memory_mb", "got"), [(150, False), (2000, True), (None, True)])
async def test_a_program_gets_no_more_data_than_it_may(tmp_path: Path, memory_mb: int | None, got: bool) -> None:
    program = _TAKES_300_MB.format(bounded=memory_mb is not None)
    command = Command(sys.executable, ("-c", program), str(tmp_path), "take", memory_mb=memory_mb)
    with anyio.fail_after(20):
        async with LocalTerminals() as terminals:
            terminal_id = await terminals.create(command)
            ended = await terminals.wait(terminal_id)
            output = await terminals.output(terminal_id)
    assert ("got it" in output.text) is got, output.text
    assert (ended.exit_code == 0) is got


async def test_what_a_shell_line_starts_at_once_is_bounded_from_its_first_moment(tmp_path: Path) -> None:
    line = "echo $0; (ulimit -d) & wait; ulimit -d; exit 3"
    with anyio.fail_after(20):
        async with LocalTerminals() as terminals:
            terminal_id = await terminals.create(Command.of(line, None, str(tmp_path), memory_mb=123))
            ended = await terminals.wait(terminal_id)
            output = await terminals.output(terminal_id)
    assert (output.text, ended.exit_code) == (f"/bin/sh\n{123 * 1024}\n{123 * 1024}\n", 3)
