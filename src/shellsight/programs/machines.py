"""Programs that show or change this machine: its services, disks' mounts, users, network and processes."""

from __future__ import annotations

from shellsight.report import Effect, Standing
from shellsight.words.arguments import names, prefixes
from shellsight.words.call import Call, Judge, Outcome, dangerous, safe, unknown


def system(reason: str, *effects: Effect) -> Judge:
    """A judge for programs that change the machine; their version alone only looks."""

    def judge(call: Call) -> Outcome:
        if len(call.args) == 1 and call.args[0].certain and call.args[0].text in {"--version", "-V", "--help"}:
            return safe("shows its version or help")
        return dangerous(reason, (), *effects)

    return judge


def openssl(call: Call) -> Outcome:
    """openssl: versions and looks at certificates aside, keys and secrets."""
    first = call.args[0].text if call.args else ""
    if first in {"version", "help", "list"}:
        return safe("shows its version")
    source = "network" if first == "s_client" else "decoder"
    return Outcome(
        Standing.DANGEROUS, "handles keys, codes or connections", (), frozenset({Effect.SECRETS}), source=source
    )


def journal(call: Call) -> Outcome:
    """`journalctl`: shows logs, or deletes them."""
    if any(
        arg.text.startswith(prefixes("--vacuum --rotate --flush --setup --sync --relinquish --update --cursor-file"))
        for arg in call.args
    ):
        return dangerous("deletes logs", (), Effect.SYSTEM)
    return unknown("shows this machine's logs")


def addresses(call: Call) -> Outcome:
    """`ip` and `ifconfig`: show, or change the network."""
    texts = [arg.text for arg in call.args]
    plain = [text for text in texts if not text.startswith("-")]
    if call.name == "ifconfig" and len(plain) <= 1 and all(arg.certain for arg in call.args):
        return safe("shows network interfaces")
    words = names("addr address a link l route r neigh n rule")
    if (
        call.name == "ip"
        and all(arg.certain for arg in call.args)
        and plain
        and plain[0] in words
        and (len(plain) == 1 or plain[1] in {"show", "list", "ls"})
        and not any(text.startswith(("-b", "-n", "--b")) and text not in {"-br", "-brief"} for text in texts)
    ):
        return safe("shows network settings")
    return dangerous("changes the network", (), Effect.SYSTEM)


def keys(call: Call) -> Outcome:
    """Programs that make, show and use keys: only their version looks."""
    if len(call.args) == 1 and call.args[0].text == "--version":
        return safe("shows its version")
    return Outcome(Standing.DANGEROUS, "handles keys", (), frozenset({Effect.SECRETS}), source="decoder")


def calculator(call: Call) -> Outcome:
    """`bc`: computes what is typed; its operands are files of statements."""
    return unknown("computes what it is fed") if call.args else safe("computes")


def crontab(call: Call) -> Outcome:
    """`crontab`: jobs for later; `-l` shows them."""
    if [arg.text for arg in call.args] == ["-l"]:
        return safe("shows jobs")
    return dangerous("plans or deletes jobs that run later", (), Effect.SYSTEM)
