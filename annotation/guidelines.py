"""A guideline's Markdown as safe HTML. Raw HTML in it is shown as text; pictures stay out."""

from functools import lru_cache

from django.utils.safestring import SafeString
from markdown_it import MarkdownIt

_markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


@lru_cache(maxsize=256)
def as_html(body: str) -> SafeString:
    """The body rendered. Its headings start at h2: the page's own h1 stays the only one."""
    tokens = _markdown.parse(body)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = "h2" if token.tag in ("h1", "h2") else "h3"
        elif token.type == "bullet_list_open":
            token.attrSet("class", "dotted")
    return SafeString(_markdown.renderer.render(tokens, _markdown.options, {}))  # html is off: every < of the body is escaped
