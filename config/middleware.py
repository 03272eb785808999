"""What every request passes through: its line in the log, its author in the audit trail, refusals as pages."""

import time
import uuid
from collections.abc import Callable

import pghistory
import structlog
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render

from config.refusals import refusal
from curation.keeping import without_waiting
from workers import tasks

log = structlog.get_logger("assay.request")
Respond = Callable[[HttpRequest], HttpResponseBase]


class RequestLog:
    """One line a request: who, what, how it ended, how long it took. Never a query string or a body: they hold content."""

    def __init__(self, respond: Respond) -> None:
        self.respond = respond

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        began = time.perf_counter()
        structlog.contextvars.bind_contextvars(request=uuid.uuid4().hex[:12])
        try:
            response = self.respond(request)
            log.info(
                "request", method=request.method, path=request.path, status=response.status_code, user=request.user.pk,
                ms=round((time.perf_counter() - began) * 1000, 1),
            )  # fmt: skip
            return response
        finally:
            structlog.contextvars.clear_contextvars()


class Private:
    """No answer is kept for others, and none is shown again without asking: after signing out, Back finds nothing."""

    def __init__(self, respond: Respond) -> None:
        self.respond = respond

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.respond(request)
        response.headers.setdefault("Cache-Control", "private, no-cache")
        return response


class Audit:
    """Every change that a request makes says who asked and by which route."""

    def __init__(self, respond: Respond) -> None:
        self.respond = respond

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.method in ("GET", "HEAD", "OPTIONS"):
            return self.respond(request)
        with pghistory.context(user=request.user.pk, path=request.path):
            return self.respond(request)


class Unhurried:
    """No request waits for figures of very many votes: what it wanted is sent to the workers when its answer is made."""

    def __init__(self, respond: Respond) -> None:
        self.respond = respond

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with without_waiting() as asked:
            response = self.respond(request)
        for wanted in asked.wanted:
            tasks.send_wanted(wanted)
        return response


class Errors:
    """A refusal becomes a page (or JSON, where a script asked) that says what is wrong and what to do."""

    def __init__(self, respond: Respond) -> None:
        self.respond = respond

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.respond(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        refused = refusal(error)
        if refused is None:
            return None
        if request.headers.get("Accept", "").startswith("application/json"):
            return JsonResponse({"code": refused.code, "message": refused.message, "fields": refused.fields}, status=refused.status)
        return render(request, "refused.html", {"error": refused}, status=refused.status)
