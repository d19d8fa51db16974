"""What keeps the policy of the pages strict is in no template and in no script of ours; and what is
shipped of others is what was fetched.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from facade.programs.console.web import pages, static
from tests.browser import vendored

TEMPLATES = sorted(pages.FOLDER.rglob("*.html"))
OURS = [path for path in sorted(static.FOLDER.iterdir()) if path.name.startswith("console.")]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(pages.FOLDER)))
def test_a_template_has_nothing_that_a_strict_policy_refuses(path: Path) -> None:
    text = path.read_text()

    assert not re.search(
        r"\sstyle\s*=|<style|hx-on|\bjs:|javascript:|hx-vals|hx-vars|\son[a-z]+=\"", text, re.IGNORECASE
    )
    # No script in the page, and nothing from elsewhere.
    assert all(
        re.fullmatch(r"<script src=\"\{\{ static\('[\w.]+'\) \}\}\" defer></script>", found)
        for found in re.findall(r"<script.*?</script>", text, re.DOTALL)
    )
    assert "://" not in text
    # A trigger with a filter evaluates text.
    assert not re.search(r"hx-trigger=\"[^\"]*\[", text)
    assert "|safe" not in text.replace(" ", "")


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(pages.FOLDER)))
def test_each_form_that_changes_something_has_a_token(path: Path) -> None:
    for form in re.findall(r"<form method=\"post\".*?</form>", path.read_text(), re.DOTALL):
        assert "ui.token(csrf)" in form or 'name="csrf"' in form, form[:200]


def test_every_input_has_a_label() -> None:
    for path in TEMPLATES:
        text = path.read_text()
        for found in re.findall(r"<(?:input|select|textarea)\b[^>]*>", text):
            if 'type="hidden"' in found or "aria-label=" in found:
                continue
            named = re.search(r'id="([^"]+)"', found)
            inside = re.search(r"<label>[^<]*" + re.escape(found), text)
            assert inside or (named and f'for="{named.group(1)}"' in text), (path.name, found)


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_our_own_files_load_nothing_and_evaluate_nothing(path: Path) -> None:
    text = path.read_text()

    assert not re.search(r"\beval\(|new Function|innerHTML|@import|url\(|https?://", text)


def test_what_is_shipped_of_others_is_what_was_fetched_with_its_licence() -> None:
    shipped = {path.name for path in static.FOLDER.iterdir()} - {path.name for path in OURS} - {"icon.svg"}

    assert shipped == set(vendored.SHA256)
    for name, digest in vendored.SHA256.items():
        assert hashlib.sha256((static.FOLDER / name).read_bytes()).hexdigest() == digest, name
    assert {name for name in shipped if name.endswith(".licence.txt")} == {"htmx.licence.txt", "uPlot.licence.txt"}
