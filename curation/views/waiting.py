"""Pages whose figures a worker may still have to make."""

from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from annotation import access
from curation.keeping import BeingWorkedOut
from workers import health

View = Callable[..., HttpResponse]


def shows_when_ready(here: str) -> Callable[[View], View]:
    """Until its figures are there, the page says so and looks again every two seconds. `here`: the section of the side bar."""

    def wrap(view: View) -> View:
        @wraps(view)
        def shown(request: HttpRequest, project: str, *args: object, **kwargs: object) -> HttpResponse:
            try:
                return view(request, project, *args, **kwargs)
            except BeingWorkedOut:
                context = {"member": access.researcher(request.user, project), "here": here, "workers": health.listening("cpu")}
                return render(request, "curation/being_worked_out.html", context, status=202)

        return shown

    return wrap
