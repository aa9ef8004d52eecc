"""Ports are promises: abstract, documented, kept by somebody, and named by nobody who keeps them."""

from __future__ import annotations

import importlib
import inspect
import logging
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest

import punie
import punie.ports
from punie.application.agent import PunieAgent
from punie.ports.agent import Agent


def load(package: Any) -> None:
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def protocols() -> list[type]:
    """Every Protocol that a module of `punie.ports` defines."""
    load(punie.ports)
    found: list[type] = []
    for module in pkgutil.iter_modules(punie.ports.__path__, "punie.ports."):
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if kind.__module__ == module.name and getattr(kind, "_is_protocol", False):
                found.append(kind)
    return found


def keepers(port: type) -> Iterator[type]:
    for child in port.__subclasses__():
        yield child
        yield from keepers(child)


PORTS = protocols()


@pytest.mark.parametrize("port", PORTS, ids=lambda port: port.__name__)
def test_a_port_is_a_checkable_protocol_of_documented_abstract_methods(port: Any) -> None:
    assert getattr(port, "_is_runtime_protocol", False), "@runtime_checkable"
    assert inspect.getdoc(port)
    public = {name for name, member in vars(port).items() if not name.startswith("_") and callable(member)}
    assert public <= port.__abstractmethods__, "a port has no behaviour"
    assert all(inspect.getdoc(getattr(port, name)) for name in port.__abstractmethods__)
    with pytest.raises(TypeError):
        port()


@pytest.mark.requirement("DC-04")
@pytest.mark.parametrize("port", PORTS, ids=lambda port: port.__name__)
def test_a_port_is_kept_by_a_whole_class_that_names_it_as_its_base(port: Any) -> None:
    load(punie)
    ours = [kind for kind in keepers(port) if kind.__module__.startswith(("punie.adapters.", "punie.application."))]
    assert ours
    assert [kind.__name__ for kind in ours if inspect.isabstract(kind)] == []


@pytest.mark.requirement("S3-32", "S3-36")
def test_punie_agent_satisfies_agent_protocol() -> None:
    agent = PunieAgent(scope=lambda *_, **__: pytest.fail("no session is opened"), log=logging.getLogger("test"))
    assert isinstance(agent, Agent)
