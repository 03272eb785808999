"""The look's small parts as template tags: icons, marks of who says so, and numbers that say when they are missing."""

from datetime import UTC, datetime

from django import template
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from annotation.guidelines import as_html
from annotation.models import Project, User

register = template.Library()

# ruff: noqa: E501 - a path is one word
# 16 units, stroke 1.5, in the colour of the text beside them.
ICONS = {
    "heart": '<path d="M8 13.3S2.2 9.9 2.2 6.1A2.9 2.9 0 0 1 8 5a2.9 2.9 0 0 1 5.8 1.1C13.8 9.9 8 13.3 8 13.3z"/>',
    "close": '<path d="M4 4l8 8M12 4l-8 8"/>',
    "download": '<path d="M8 2.5V10M4.8 7 8 10.2 11.2 7M3 13.2h10"/>',
    "cup": '<path d="M3 6h8v3.5a3.5 3.5 0 0 1-3.5 3.5h-1A3.5 3.5 0 0 1 3 9.5z"/><path d="M11 7h1a1.6 1.6 0 0 1 0 3.2h-1M5.5 2v1.5M8.5 2v1.5"/>',
    "hide": '<path d="M2 2l12 12"/><path d="M6.5 3.8A7 7 0 0 1 8 3.6c4 0 6.2 4.4 6.2 4.4a10 10 0 0 1-1.7 2.2M4.3 4.9A10 10 0 0 0 1.8 8S4 12.4 8 12.4a6 6 0 0 0 2.9-.8"/><path d="M6.7 6.8a1.9 1.9 0 0 0 2.6 2.6"/>',
    "comment": '<path d="M2.5 3h11v8H7.5L4.5 13.5V11h-2z"/>',
    "keys": '<rect x="1.5" y="4" width="13" height="8.5" rx="1.5"/><path d="M4 7v.01M6.7 7v.01M9.3 7v.01M12 7v.01M5 9.8h6"/>',
    "book": '<path d="M8 4c-1.2-1-3-1.3-5.5-1.3v9.6C5 12.3 6.8 12.6 8 13.6c1.2-1 3-1.3 5.5-1.3V2.7C11 2.7 9.2 3 8 4z"/><path d="M8 4v9.5"/>',
    "flag": '<path d="M3.5 14V2.5h8.5l-2 3 2 3H3.5"/>',
    "check": '<path d="M3 8.5 6.5 12 13 4.5"/>',
    "undo": '<path d="M3 6h6.5a3.5 3.5 0 0 1 0 7H6"/><path d="M5.5 3.5 3 6l2.5 2.5"/>',
    "text": '<path d="M2.5 4h11M2.5 8h11M2.5 12h6.5"/>',
    "abstain": '<circle cx="8" cy="8" r="5.8"/><path d="M4 12 12 4"/>',
    "lock": '<rect x="3.5" y="7" width="9" height="6.5" rx="1.2"/><path d="M5.5 7V5a2.5 2.5 0 0 1 5 0v2"/>',
    "warn": '<path d="M8 2.3 14.5 13.5h-13z"/><path d="M8 6.5v3M8 11.5v.01"/>',
    "down": '<path d="M4 6l4 4 4-4"/>',
    "menu": '<path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11"/>',
    "person": '<circle cx="8" cy="5.5" r="2.6"/><path d="M2.8 13.5c.4-2.9 2.3-4.3 5.2-4.3s4.8 1.4 5.2 4.3"/>',
    "pause": '<path d="M5.5 3v10M10.5 3v10"/>',
    "grey": '<circle cx="8" cy="8" r="5.8"/><path d="M8 2.2v11.6A5.8 5.8 0 0 0 8 2.2z" fill="currentColor" stroke="none"/>',
    "copy": '<rect x="5.5" y="5.5" width="8" height="8" rx="1.2"/><path d="M10.5 5.5v-3h-8v8h3"/>',
    "dice": '<rect x="2.5" y="2.5" width="11" height="11" rx="2"/><path d="M5.5 5.5v.01M10.5 5.5v.01M8 8v.01M5.5 10.5v.01M10.5 10.5v.01"/>',
    "image": '<rect x="2" y="3" width="12" height="10" rx="1.5"/><path d="M2.5 11.5 6 8l2.5 2.5L10.5 8.5l3 3"/><circle cx="10.8" cy="5.8" r=".9"/>',
    "plus": '<path d="M8 3v10M3 8h10"/>',
    "scales": '<path d="M8 2.5v11M5 13.5h6M3 4.5h10M3 4.5 1.3 9a1.9 1.9 0 0 0 3.4 0zM13 4.5 11.3 9a1.9 1.9 0 0 0 3.4 0z"/>',
    "leave": '<path d="M6.5 2.5H3v11h3.5M7 8h6.5M10.5 5l3 3-3 3"/>',
    "right": '<path d="M6 4l4 4-4 4"/>',
    "play": '<path d="M5 3l7.5 5L5 13z"/>',
    "file": '<path d="M4 1.8h5.2L12.5 5v9.2H4z"/><path d="M9 2v3.2h3.3"/>',
    "dial": '<path d="M2.5 12a6 6 0 1 1 11 0"/><path d="M8 10.5 10.8 6.5"/>',
    "eye": '<path d="M1.8 8S4 3.6 8 3.6 14.2 8 14.2 8 12 12.4 8 12.4 1.8 8 1.8 8z"/><circle cx="8" cy="8" r="1.9"/>',
    "info": '<circle cx="8" cy="8" r="5.8"/><path d="M8 7.5V11M8 5.2v.01"/>',
    "zoom": '<circle cx="7" cy="7" r="4.6"/><path d="M10.4 10.4 14 14M5 7h4M7 5v4"/>',
    "clock": '<circle cx="8" cy="8" r="5.8"/><path d="M8 4.8V8l2.2 1.5"/>',
}
# A filled circle is a person, a hollow square the machine, both overlapping where they meet.
MARKS = {
    "people": ("by people", '<circle class="person" cx="6" cy="6" r="4.5"/>'),
    "machine": ("by machine", '<rect x="1.8" y="1.8" width="8.4" height="8.4" rx="1"/>'),
    "both": ("people and machine", '<rect x="1" y="1" width="7.5" height="7.5" rx="1"/><circle class="person" cx="8" cy="8" r="3.6"/>'),
}


register.filter("markdown", as_html)


@register.filter
def when(at: datetime | None) -> str:
    """A moment as every page says it: 11:53 UTC today, else 20 Nov 2026, 11:53 UTC."""
    if at is None:
        return ""
    at = at.astimezone(UTC)
    return f"{at:%H:%M} UTC" if at.date() == timezone.now().astimezone(UTC).date() else f"{at.day} {at:%b %Y, %H:%M} UTC"


@register.simple_tag
def icon(name: str, classes: str = "") -> SafeString:
    """{% icon "flag" %}: drawn beside words, so hidden from screen readers."""
    return format_html('<svg class="icon {}" viewBox="0 0 16 16" aria-hidden="true">{}</svg>', classes, mark_safe(ICONS[name]))  # noqa: S308 - ours


@register.simple_tag
def by(who: str, *, silent: bool = False) -> SafeString:
    """{% by "people" %}, "machine" or "both". `silent` where the words beside it already say so."""
    label, shape = MARKS[who]
    role = mark_safe('aria-hidden="true"') if silent else format_html('role="img" aria-label="{}"', label)
    return format_html('<svg class="by" viewBox="0 0 12 12" {}>{}</svg>', role, mark_safe(shape))  # noqa: S308 - ours


@register.simple_tag
def mark() -> SafeString:
    """The mark of Assay."""
    return mark_safe(
        '<svg viewBox="0 0 24 24" aria-hidden="true"><rect x="3" y="3" width="13" height="13" rx="1.5"/>'
        '<circle class="person" cx="15" cy="15" r="6.5"/></svg>'
    )


@register.simple_tag(takes_context=True)
def side_link(context: template.Context, name: str, label: str) -> SafeString:
    """One line of the side bar. `name` is the address's name; the page says where it is with `here`."""
    current = mark_safe(' aria-current="page"') if context.get("here") == name else ""
    return format_html('<li><a href="{}"{}>{}</a></li>', reverse(name, args=[context["member"].project.slug]), current, label)


@register.filter
def short_id(external_id: str) -> str:
    """An id in a list: a long one, such as a hash and a row, keeps its two ends, by which it is still found."""
    return external_id if len(external_id) <= 26 else f"{external_id[:14]}…{external_id[-10:]}"


@register.filter
def percent(share: float) -> str:
    """A share in percent, as it was set: 0.125 is 12.5%."""
    return f"{share * 100:.6g}%"


@register.simple_tag(takes_context=True)
def name(context: template.Context, user: User) -> str:
    """{% name sample.created_by %}: a user as the researchers of this page's project see them."""
    project: Project = context["member"].project
    return project.name_of(user)
