"""The hosts that a call names: whether a rule is about them, and which of them no call may reach."""

from __future__ import annotations

from fnmatch import fnmatchcase

from punie.domain.permission.decisions import Finding
from punie.domain.permission.rules import Rule, Verdict
from punie.domain.tools.roles import Role
from punie.domain.tools.tool import ToolDescriptor, ToolSource
from punie.domain.values.json_value import JsonObject
from punie.domain.values.web import ip_of, is_loopback, is_public, place_in

ADDRESS_RULE = "built-in:address"


def places_of(tool: ToolDescriptor, arguments: JsonObject, *, said: bool = False) -> tuple[str, ...]:
    """The hosts of the call's addresses, with unusual ports; an empty text where an address cannot be read.

    With `said` an address counts only where the tool itself says that the parameter holds one.
    """
    roles = tool.roles
    names = (name for name, role in roles.by_name.items() if role is Role.URL and not (said and name in roles.guessed))
    return tuple(place_in(arguments[name]) for name in names if arguments.get(name) is not None)


def meets(rule: Rule, tool: ToolDescriptor, arguments: JsonObject) -> bool:
    """Whether the rule is about the hosts of that call: an allow rule has to cover all, any other one of them."""
    if rule.host is None:
        return True
    hits = [_covers(rule.host, place, exactly=rule.allows) for place in places_of(tool, arguments, said=rule.allows)]
    return bool(hits) and (all(hits) if rule.allows else any(hits))


def _covers(pattern: str, place: str, *, exactly: bool) -> bool:
    (host, port), (wanted, wanted_port) = _split(place), _split(pattern)
    if not place:
        return not exactly
    return fnmatchcase(host, wanted) and (fnmatchcase(port, wanted_port) if wanted_port else not (exactly and port))


def _split(place: str) -> tuple[str, str]:
    """The host, without the brackets of IPv6, which mean something else in a pattern, and the port."""
    host, _, port = place.rpartition(":") if place[-1:] != "]" and ":" in place else (place, "", "")
    return host.strip("[]"), port


def address_finding(tool: ToolDescriptor, arguments: JsonObject, rules: tuple[Rule, ...]) -> Finding | None:
    """The denial of an address of a private network; one of this machine needs an allow rule that names its host."""
    ours = tool.source is ToolSource.BUILT_IN
    named = any(rule.allows and rule.host is not None and "*" not in _split(rule.host)[0] for rule in rules)
    for place in places_of(tool, arguments) if ours else ():
        host = _split(place)[0]
        if is_loopback(host) and not named:
            why = f"{place} is this machine, which only a rule with that host allows"
        elif ip_of(host) is not None and not is_loopback(host) and not is_public(host):
            why = f"{place} is no address of the public network"
        else:
            continue
        return Finding(Verdict.DENY, ADDRESS_RULE, why)
    return None
