"""The table of settings in docs/settings.md is the one in the code."""

from __future__ import annotations

from tools.settings_table import PAGE, ROOT, page


def test_the_page_is_up_to_date() -> None:
    said = (ROOT / PAGE).read_text(encoding="utf-8")
    assert said == page(), "run: python -m tools.settings_table --write"


def test_the_links_of_the_table_lead_to_pages_that_are_there() -> None:
    from punie.bootstrap.settings.keys import KEYS

    pages = {key.page.partition("#")[0] for key in KEYS.values() if key.page is not None}
    assert pages
    assert not [page for page in pages if not (ROOT / "docs" / page).is_file()]
