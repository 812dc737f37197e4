"""What every page we write must be: one file, nothing loaded from elsewhere, headings in order, pictures with words."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "input", "link", "line", "rect", "circle", "path"}
LOADING = ("src", "href", "data", "action", "poster", "srcset")
MOST_BYTES = 1_000_000


class Page(HTMLParser):
    """A page taken apart; it fails on tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.open, self.headings, self.words = text, [], [], []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"script", "style"} & {*self.open}:
            self.words.append(data)

    @property
    def shown(self) -> str:
        """The words people read."""
        return re.sub(r"\s+", " ", " ".join(self.words))


def checked_page(text: str) -> Page:
    """The page, once it is what every page must be."""
    found = Page(text)
    assert len(text.encode()) < MOST_BYTES
    assert text.startswith("<!doctype html>")
    assert "default-src 'none'" in text
    for tag, attributes in found.tags:
        for name in LOADING:
            assert attributes.get(name) in (None, "") or str(attributes[name]).startswith("#"), (tag, attributes)
        if tag == "svg":
            assert attributes.get("aria-hidden") == "true" or attributes.get("aria-label")
        if tag == "button":
            assert attributes.get("type") == "button"
    assert "url(" not in text
    assert "@import" not in text
    assert found.headings[0] == 1
    assert found.headings.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(found.headings, found.headings[1:], strict=False))
    assert ("html", {"lang": "en"}) in found.tags
    ids = [attributes["id"] for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    return found
