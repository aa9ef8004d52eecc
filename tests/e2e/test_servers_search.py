"""`punie servers search` and adding by name, against a small registry of the public one's API."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.raw_client import clean_environment, run_cli
from tests.fakes.described_servers import PYPI, a_package, a_remote, a_server, named, wrapped
from tests.fakes.registry import Answer, FakeRegistry

SERVERS = [
    wrapped(a_server(name="com.example/weather")),
    wrapped(a_server(PYPI, name="com.example/weather-old", version="0.5.0"), status="deprecated"),
    wrapped(a_server(a_package(version="latest"), name="com.example/weather-moving")),
    wrapped({**a_remote(), "name": "com.example/weather-remote", "description": "sun\x1b[31m\n\u202eniar"}),
    {"server": {"name": 7}},
    wrapped(a_server(a_package(runtimeArguments=[named("--call", "x")]), name="com.example/weather-evil")),
    wrapped(a_server(name="com.example/clock")),
]


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with FakeRegistry([*SERVERS]) as made:
        yield made


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def servers(project: Path, registry: str | None, *words: str) -> subprocess.CompletedProcess[str]:
    more = {} if registry is None else {"PUNIE_SERVERS_REGISTRY": registry}
    return run_cli("servers", *words, env=clean_environment(project.parent / "home", **more), cwd=project)


def test_a_search_shows_what_each_would_run_and_goes_through_the_pages(project: Path, registry: FakeRegistry) -> None:
    done = servers(project, registry.url, "search", "weather")
    assert (done.returncode, done.stderr) == (0, "")
    for text in (
        "com.example/weather 1.2.0\n  The weather of cities\n  npx -y @example/weather@1.2.0\n",
        "com.example/weather-old 0.5.0 (deprecated)\n",
        "cannot be added: nothing of it can be used",
        "https://weather.example/mcp",
        "sun<U+001B>[31m <U+202E>niar",
    ):
        assert text in done.stdout
    assert "clock" not in done.stdout
    assert len(registry.asked) == 3
    rows = json.loads(servers(project, registry.url, "search", "weather", "--json", "--limit", "3").stdout)
    assert [(row["name"], row["status"], row["problem"] is None) for row in rows] == [
        ("com.example/weather", "active", True),
        ("com.example/weather-old", "deprecated", True),
        ("com.example/weather-moving", "active", False),
    ]


def test_one_entry_that_is_broken_hides_no_other(project: Path, registry: FakeRegistry) -> None:
    registry.page = 10
    done = servers(project, registry.url, "search", "")
    assert "an entry that cannot be read: name must be a text" in done.stdout
    assert "com.example/clock" in done.stdout


def test_where_nothing_is_known_it_says_so(project: Path, registry: FakeRegistry) -> None:
    assert servers(project, registry.url, "search", "nothing like it").stdout == "The registry knows of none.\n"
    assert servers(project, registry.url, "search", "nothing like it", "--json").stdout == "[]\n"
    for limit in ("0", "-1", "201", "x"):
        assert servers(project, registry.url, "search", "x", f"--limit={limit}").returncode == 2


def test_the_address_comes_from_the_users_settings_and_never_from_a_project(
    project: Path, registry: FakeRegistry
) -> None:
    none = servers(project, None, "search", "clock")
    assert (none.returncode, none.stdout) == (2, "")
    assert "PUNIE_SERVERS_REGISTRY" in none.stderr
    written = f'[servers]\nregistry = "{registry.url}/"\n'
    (project / ".punie").mkdir()
    (project / ".punie/config.toml").write_text(written)
    assert servers(project, None, "search", "clock").returncode == 2
    (project.parent / "home/punie/config.toml").write_text(written)
    assert "com.example/clock" in servers(project, None, "search", "clock").stdout


@pytest.mark.parametrize("address", ["http://registry.example", "ftp://x.example", "https://a:b@x.example", "https://x.example/?a=b",
                                     "registry.example", "https://"])  # fmt: skip
def test_an_address_that_is_not_safe_is_refused(project: Path, address: str) -> None:
    done = servers(project, address, "search", "clock")
    assert (done.returncode, done.stdout) == (2, "")
    assert "servers.registry: expected an https address" in done.stderr


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Answer(status=500), "status 500"),
        (Answer(b"<html>"), "did not answer as a registry does"),
        (Answer(b"[]"), "names no servers"),
        (Answer(b"[" * 100_000), "did not answer as a registry does"),
        (Answer(b'{"servers": "x"}'), "names no servers"),
        (Answer(b"\xff\xfe"), "no text in UTF-8"),
        (Answer(b" " * 10_000_000), "more than"),
        (Answer(b"x", headers={"Content-Encoding": "gzip"}), "compressed"),
        (Answer(status=302, headers={"Location": "http://127.0.0.1:1/"}), "not https"),
    ],
)
def test_a_registry_that_is_broken_is_a_sentence(
    project: Path, registry: FakeRegistry, answer: Answer, why: str
) -> None:
    registry.answers["/v0.1/servers"] = answer
    done = servers(project, registry.url, "search", "clock")
    assert (done.returncode, done.stdout) == (1, "")
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_a_registry_that_gives_the_same_page_for_ever_is_asked_so_often_and_no_more(
    project: Path, registry: FakeRegistry
) -> None:
    page = {"servers": [SERVERS[0]], "metadata": {"nextCursor": "again"}}
    registry.answers["/v0.1/servers"] = Answer(json.dumps(page).encode())
    assert servers(project, registry.url, "search", "weather").returncode == 0
    assert len(registry.asked) == 2


def test_a_server_is_added_by_its_name_with_the_version_that_was_shown(project: Path, registry: FakeRegistry) -> None:
    done = servers(project, registry.url, "add", "com.example/weather", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert registry.asked == ["/v0.1/servers/com.example%2Fweather/versions/latest"]
    assert f"as described by {registry.url}" in done.stdout
    kept = json.loads((project.parent / "home/punie/mcp.json").read_text())
    assert kept == {"mcpServers": {"weather": {"command": "npx", "args": ["-y", "@example/weather@1.2.0"]}}}


def test_a_name_that_it_does_not_know_and_another_server_in_its_place_are_refused(
    project: Path, registry: FakeRegistry
) -> None:
    unknown = servers(project, registry.url, "add", "com.example/nothing", "--yes")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "404" in unknown.stderr
    registry.answers["/v0.1/servers/com.example%2Fclock/versions/latest"] = Answer(json.dumps(SERVERS[0]).encode())
    swapped = servers(project, registry.url, "add", "com.example/clock", "--yes")
    assert (swapped.returncode, swapped.stdout) == (2, "")
    assert "another server" in swapped.stderr
    assert "no registry is configured" in servers(project, None, "add", "com.example/clock", "--yes").stderr
