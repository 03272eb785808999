"""What belongs to no app: is it alive, and what is said when something breaks."""

import structlog
from django.contrib.auth.decorators import login_not_required
from django.core.cache import cache
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views import defaults
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from redis import RedisError

log = structlog.get_logger("assay.health")


@login_not_required
@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:  # noqa: ARG001
    """For load balancers and monitors: 200 when the database and Redis answer, else 503. Says nothing else."""
    answers = {"database": _database_answers(), "redis": _redis_answers()}
    return JsonResponse({name: "ok" if ok else "no answer" for name, ok in answers.items()}, status=200 if all(answers.values()) else 503)


def _database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        log.warning("database does not answer", error=type(error).__name__)
        return False
    return True


def _redis_answers() -> bool:
    try:
        cache.get("healthz")
    except (RedisError, OSError) as error:
        log.warning("redis does not answer", error=type(error).__name__)
        return False
    return True


def server_error(request: HttpRequest) -> HttpResponse:
    """A fault of ours: the page, or problem JSON where a program asked."""
    if request.path.startswith("/api/"):
        return JsonResponse(
            {
                "type": "about:blank#fault",
                "title": "Internal Server Error",
                "status": 500,
                "detail": "Something broke on our side.",
                "code": "fault",
            },
            status=500,
            content_type="application/problem+json",
        )
    return defaults.server_error(request)
