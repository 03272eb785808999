"""How the API tells of itself: the schema, its pages for people, and the answer at an address that there is not."""

from typing import Any

from drf_spectacular.contrib.knox_auth_token import KnoxTokenScheme
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.permissions import AllowAny
from rest_framework.views import APIView

from annotation.errors import Missing


class Docs(SpectacularSwaggerSplitView):
    """Swagger UI from its package, under the strict content policy of every page: nothing is inline."""

    url_name = "schema"
    template_name = "api_docs.html"


class TokensScheme(KnoxTokenScheme):  # type: ignore[no-untyped-call]
    """Our tokens, as the schema tells of them."""

    target_class = "config.api_requests.Tokens"
    name = "token"


@extend_schema(exclude=True)
class Unknown(APIView):
    """Every address under /api/v1/ that there is not, for any method."""

    permission_classes = [AllowAny]

    def initial(self, *_: Any, **__: Any) -> None:
        raise Missing("There is no such address. Addresses end with a slash; all of them are listed at /api/v1/docs/.")


PROBLEM = {
    "type": "object",
    "description": "What is wrong and what to do (RFC 9457).",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "In words."},
        "code": {"type": "string", "description": "For a program to test."},
        "fields": {"type": "object", "additionalProperties": True, "description": "By field, what is wrong with it."},
    },
}


def with_problems(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Schema hook: every operation may answer with a problem."""
    result.setdefault("components", {}).setdefault("schemas", {})["Problem"] = PROBLEM
    answer = {
        "description": "Refused: not signed in (401), not for this role (403), not there (404), not as things stand (409), or wrong (400).",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for operations in result["paths"].values():
        for operation in operations.values():
            operation["responses"]["default"] = answer
    return result
