"""Pages from a real server on loopback that misbehaves, and from names that lead astray."""

from __future__ import annotations

import gzip
from collections.abc import Iterator

import anyio
import pytest

from punie.adapters.web.pages import WebPages
from punie.adapters.web.reading import TEXT_BYTES, readable
from punie.domain.errors import ToolFailedError
from tests.fakes.registry import Answer, FakeRegistry

pytestmark = pytest.mark.anyio

HTML = {"Content-Type": "text/html; charset=utf-8"}
PAGE = b"""<html><head><title>A \xe2\x80\xaetitle</title><script>evil()</script></head><body><nav>menu</nav>
<main><h1>Head</h1><p>Some <b>text</b>\x07\x1b with a <a href="/x">link</a>.</p><script>evil()</script>
<ul><li>one<li>two</ul></main><footer>foot</footer></body></html>"""


@pytest.fixture
def web() -> Iterator[FakeRegistry]:
    with FakeRegistry(answers={"/page": Answer(PAGE, headers=HTML), "/hangs": Answer(hangs=True)}) as made:
        yield made


def port_of(web: FakeRegistry) -> str:
    return web.url.rpartition(":")[2]


def says(*addresses: str) -> tuple[WebPages, list[str]]:
    asked: list[str] = []

    async def resolve(host: str, _port: int) -> list[str]:
        asked.append(host)
        return list(addresses)

    return WebPages(resolve), asked


async def test_the_main_part_of_a_page_is_read_without_scripts_menus_and_controls(web: FakeRegistry) -> None:
    page = await WebPages().fetch(f"{web.url}/page")
    assert page.title == "A title"
    assert page.text == "# Head\n\nSome **text** with a [link](/x).\n\n- one\n- two"
    (headers,) = web.headers
    assert headers["user-agent"].startswith("punie")
    assert not {"cookie", "authorization", "referer"} & set(headers)


async def test_a_name_is_resolved_once_and_the_connection_goes_where_the_judged_address_is(web: FakeRegistry) -> None:
    pages, asked = says("127.0.0.1")
    page = await pages.fetch(f"http://localhost:{port_of(web)}/page")
    assert page.title == "A title"
    assert asked == ["localhost"]
    assert web.headers[0]["host"].startswith("localhost:")


@pytest.mark.parametrize(
    "addresses",
    [
        ("127.0.0.1",),
        ("10.0.0.1",),
        ("192.168.0.9",),
        ("169.254.169.254",),
        ("100.64.0.1",),
        ("224.0.0.1",),
        ("0.0.0.0",),  # noqa: S104 - an address to refuse
        ("::1",),
        ("::ffff:127.0.0.1",),
        ("fd00::1",),
        ("fe80::1%eth0",),
        ("ff02::1",),
        ("64:ff9b::7f00:1",),
        ("2002:7f00:1::",),
        ("8.8.8.8", "127.0.0.1"),
        ("not an address",),
        (),
    ],
)
async def test_a_name_that_leads_to_a_private_address_is_refused_before_a_connection(
    web: FakeRegistry, addresses: tuple[str, ...]
) -> None:
    pages, _ = says(*addresses)
    with pytest.raises(ToolFailedError, match="private network"):
        await pages.fetch(f"http://pages.example:{port_of(web)}/page")
    assert not web.asked


async def test_a_name_of_this_machine_leads_nowhere_else() -> None:
    pages, _ = says("8.8.8.8")
    with pytest.raises(ToolFailedError, match="private network"):
        await pages.fetch("http://localhost/page")


@pytest.mark.parametrize("onward", ["http://other.example/x", "http://127.0.0.1:1/x", "https://localhost/x"])
async def test_a_redirect_to_another_host_or_port_is_told_and_not_followed(web: FakeRegistry, onward: str) -> None:
    web.answers["/away"] = Answer(status=302, headers={"Location": onward})
    page = await WebPages().fetch(f"{web.url}/away")
    assert (page.leads_to, page.text) == (onward, "")
    assert web.asked == ["/away"]


async def test_a_redirect_within_the_host_is_followed_so_many_times(web: FakeRegistry) -> None:
    web.answers["/here"] = Answer(status=301, headers={"Location": "/page"})
    web.answers["/loop"] = Answer(status=301, headers={"Location": "/loop"})
    web.answers["/scheme"] = Answer(status=301, headers={"Location": "file:///etc/passwd"})
    assert (await WebPages().fetch(f"{web.url}/here")).title == "A title"
    with pytest.raises(ToolFailedError, match="more than 5 times"):
        await WebPages().fetch(f"{web.url}/loop")
    with pytest.raises(ToolFailedError, match="only http and https"):
        await WebPages().fetch(f"{web.url}/scheme")


async def test_sizes_and_bombs_are_bounded(web: FakeRegistry) -> None:
    plain = {"Content-Type": "text/plain"}
    web.answers["/long"] = Answer(b"x" * (TEXT_BYTES + 9), headers=plain)
    web.answers["/bomb"] = Answer(gzip.compress(b"y" * 50_000_000), headers={**plain, "Content-Encoding": "gzip"})
    web.answers["/lies"] = Answer(b"no gzip", headers={**plain, "Content-Encoding": "gzip"})
    web.answers["/br"] = Answer(b"?", headers={**plain, "Content-Encoding": "br"})
    for path in ("/long", "/bomb"):
        page = await WebPages().fetch(f"{web.url}{path}")
        assert page.cut
        assert len(page.text) == TEXT_BYTES
    with pytest.raises(ToolFailedError, match="no gzip"):
        await WebPages().fetch(f"{web.url}/lies")
    with pytest.raises(ToolFailedError, match="in the form br"):
        await WebPages().fetch(f"{web.url}/br")


async def test_other_types_and_statuses_are_said(web: FakeRegistry) -> None:
    web.answers["/pdf"] = Answer(b"%PDF", headers={"Content-Type": "application/pdf"})
    web.answers["/gone"] = Answer(status=404)
    with pytest.raises(ToolFailedError, match="is application/pdf, which fetch_page cannot read"):
        await WebPages().fetch(f"{web.url}/pdf")
    with pytest.raises(ToolFailedError, match="status 404"):
        await WebPages().fetch(f"{web.url}/gone")
    with pytest.raises(ToolFailedError, match="could not be read"):
        await WebPages().fetch("http://127.0.0.1:1/")


async def test_a_server_that_never_answers_costs_the_time_that_was_set(web: FakeRegistry) -> None:
    with anyio.fail_after(5), pytest.raises(ToolFailedError, match=r"did not answer within 0\.2 s"):
        await WebPages(time_s=0.2).fetch(f"{web.url}/hangs")


@pytest.mark.parametrize(
    ("body", "kind", "charset", "text"),
    [
        ("grün".encode(), "text/plain", None, "grün"),
        ("grün".encode("latin-1"), "text/plain", "iso-8859-1", "grün"),
        ("grün".encode("latin-1"), "text/plain", "utf-8", "gr\ufffdn"),
        (b"a\x00b\xe2\x80\xaec", "application/json", "no-such-charset", "abc"),
        ("<p>grün</p>".encode("utf-16"), "text/html", None, "grün"),
        ('<meta charset="iso-8859-1"><p>grün'.encode("latin-1"), "text/html", None, "grün"),
        (b"<p>1 < 2 <3 &amp;lt;</p><table><tr><td>x</table>", "text/html", None, "1 < 2 <3 &lt;"),
        (b"", "text/html", None, ""),
    ],
)
def test_charsets_and_odd_pages_are_read(body: bytes, kind: str, charset: str | None, text: str) -> None:
    assert readable(body, kind, charset)[1].startswith(text)


@pytest.mark.parametrize("page", ["<" * 100_000, "<ul><li>" * 10_000 + "x", "<b><p>" * 5_000, "<a b='" * 20_000])
def test_pages_that_are_made_to_be_slow_or_long_stay_small(page: str) -> None:
    assert len(readable(page.encode(), "text/html", None)[1]) <= 2 * len(page)
