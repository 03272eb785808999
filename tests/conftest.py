"""Real PostgreSQL, real Redis: settings start the embedded ones, unless the environment names others."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.core.cache import cache
from django.test import Client, override_settings

from config import media
from tests import cast as make


@pytest.fixture(autouse=True, scope="session")
def _own_media(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Pictures of the tests lie in a folder of their own."""
    with override_settings(STORAGES={**settings.STORAGES, "default": media.storage(str(tmp_path_factory.mktemp("media")))}):
        yield


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
