"""Real PostgreSQL, real Redis: the embedded ones, unless the environment names others."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.core.cache import cache
from django.test import Client

from tests import cast as make


@pytest.fixture(scope="session", autouse=True)
def redis_server() -> Iterator[None]:
    """Redis for as long as the tests run; one that ran before (a demo on the same data folder) is left running."""
    if settings.EMBEDDED is None or settings.EMBEDDED.redis_answers():
        yield
        return
    settings.EMBEDDED.ensure_redis()
    yield
    settings.EMBEDDED.stop_redis()


@pytest.fixture(autouse=True)
def _fresh_cache() -> Iterator[None]:
    yield
    cache.clear()


@pytest.fixture
def cast(db: None) -> make.Cast:
    return make.make_cast()


@pytest.fixture
def sign_in() -> object:
    """sign_in(member) -> a browser-like client signed in as that member's user."""

    def sign_in(member: make.Membership) -> Client:
        client = Client()
        client.force_login(member.user)
        return client

    return sign_in
