"""The hosts that a call names: whether a rule is about them, and which of them no call may reach."""

from __future__ import annotations

from fnmatch import fnmatchcase

from punie.domain.permission.decisions import Finding
from punie.domain.permission.rules import Rule, Verdict
from punie.domain.tools.roles import Role
from punie.domain.tools.tool import ToolDescriptor, ToolSource
from punie.domain.values.json_value import JsonObject
from punie.domain.values.web import ip_of, is_loopback, is_public, read_address

ADDRESS_RULE = "built-in:address"


def places_of(tool: ToolDescriptor, arguments: JsonObject, *, said: bool = False) -> tuple[str, ...]:
    """The hosts of the call's addresses, with unusual ports; an empty text where an address cannot be read.

    With `said` an address counts only where the tool itself says that the parameter holds one.
    """
    roles = tool.roles
    names = (name for name, role in roles.by_name.items() if role is Role.URL and not (said and name in roles.guessed))
    return tuple(_place(arguments[name]) for name in names if arguments.get(name) is not None)


def _place(value: object) -> str:
    try:
        return read_address(value if isinstance(value, str) else "").place
    except ValueError:
        return ""


def meets(rule: Rule, tool: ToolDescriptor, arguments: JsonObject) -> bool:
    """Whether the rule is about the hosts of that call: an allow rule has to cover all, any other one of them."""
    if rule.host is None:
        return True
    hits = [_covers(rule.host, place, exactly=rule.allows) for place in places_of(tool, arguments, said=rule.allows)]
    return bool(hits) and (all(hits) if rule.allows else any(hits))


def _covers(pattern: str, place: str, *, exactly: bool) -> bool:
    if not place:
        return not exactly
    (host, port), (wanted, wanted_port) = _split(place), _split(pattern)
    return fnmatchcase(_plain(host), _plain(wanted)) and (
        fnmatchcase(port, wanted_port) if wanted_port else not (exactly and port)
    )


def _split(place: str) -> tuple[str, str]:
    host, mark, port = place.rpartition(":")
    return (host, port) if mark and not port.endswith("]") else (place, "")


def _plain(host: str) -> str:
    """The host without the brackets of IPv6, which mean something else in a pattern."""
    return host.strip("[]")


def address_finding(tool: ToolDescriptor, arguments: JsonObject, rules: tuple[Rule, ...]) -> Finding | None:
    """The denial of an address of a private network; one of this machine needs an allow rule that names its host."""
    if tool.source is not ToolSource.BUILT_IN:
        return None
    for place in places_of(tool, arguments):
        host = _split(place)[0]
        named = any(rule.allows and rule.host is not None and "*" not in _split(rule.host)[0] for rule in rules)
        if is_loopback(host) and not named:
            return Finding(
                Verdict.DENY, ADDRESS_RULE, f"{place} is this machine, which only a rule with that host allows"
            )
        if ip_of(host) is not None and not is_loopback(host) and not is_public(host):
            return Finding(Verdict.DENY, ADDRESS_RULE, f"{place} is no address of the public network")
    return None
