"""What comes in under /api/v1/: whom a token speaks for, and strict JSON.

Apart from `config.api` because rest_framework.views loads these classes while it is itself being loaded.
"""

from collections.abc import Iterator, Mapping
from typing import IO, Any

import pghistory
from knox.auth import TokenAuthentication
from rest_framework.exceptions import AuthenticationFailed, ParseError
from rest_framework.parsers import JSONParser
from rest_framework.request import Request


class Tokens(TokenAuthentication):  # type: ignore[misc]  # the package has no types
    """`Authorization: Token ...`. The audit trail names the token's owner, whom the session does not know."""

    def authenticate(self, request: Request) -> Any:
        try:
            found = super().authenticate(request)
        except UnicodeDecodeError:
            raise AuthenticationFailed from None
        if found is not None:
            pghistory.context(user=found[0].pk)
        return found


class Json(JSONParser):
    """JSON whose every text can be stored: PostgreSQL takes neither NUL nor half a surrogate pair."""

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None) -> Any:
        try:
            data = super().parse(stream, media_type, parser_context)
            for text in _texts(data):
                if "\0" in text:
                    raise ParseError("A text holds the character U+0000, which cannot be stored. Take it out.")
                text.encode()
        except RecursionError:
            raise ParseError("The JSON is nested too deeply.") from None
        except UnicodeEncodeError:
            raise ParseError("A text holds half of a surrogate pair, which is no character.") from None
        return data


def _texts(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, list):
        for value in data:
            yield from _texts(value)
    elif isinstance(data, dict):
        for key, value in data.items():
            yield key
            yield from _texts(value)
