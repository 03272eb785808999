"""Small words for runs in templates."""

from datetime import timedelta

from django import template

from scoring import progress

register = template.Library()


@register.filter
def span(value: timedelta | None) -> str:
    """1 min 42 s."""
    return progress.in_words(value)


@register.filter
def rate(value: float | None) -> str:
    """512 items/s, 3.2 items/s."""
    if value is None:
        return ""
    return f"{value:,.0f} items/s" if value >= 10 else f"{value:.1f} items/s"
