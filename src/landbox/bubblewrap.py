"""The options of bubblewrap (`bwrap`) for a box: the stronger choice where that program is installed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from landbox.places import quiet

_TEMPORARY = "/tmp"  # noqa: S108 - the box's own


def options(
    roots: Sequence[str],
    cwd: str,
    *,
    read_only: Sequence[str] = (),
    hidden: Sequence[str] = (),
    network: bool = False,
    looks: bool = False,
) -> Iterator[str]:
    """The words between `bwrap` and the program. Inside, the machine is read-only but for the roots and `/tmp`.

    `read_only` are names below each root that stay as they are, `hidden` absolute paths that are empty inside. With
    `looks` the roots are read-only too, and there is no network.
    """
    yield from ("--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
    if looks or not network:
        yield "--unshare-net"
    yield from ("--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", _TEMPORARY)
    for root in roots:
        yield from ("--ro-bind" if looks else "--bind", root, root)
        for name in read_only:
            path = f"{root.rstrip('/')}/{name}"
            yield from ("--ro-bind-try", path, path)
    for path in hidden:
        if os.path.isdir(path):
            yield from ("--tmpfs", path)
        elif os.path.isfile(path):
            yield from ("--ro-bind", os.devnull, path)
    for name, value in quiet(_TEMPORARY) if looks else ():
        yield from ("--setenv", name, value)
    yield from ("--chdir", cwd, "--")
