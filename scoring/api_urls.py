"""The machine side's part of /api/v1/."""

from django.urls import URLPattern, URLResolver, path

from scoring import api

PROJECT = "projects/<slug:project>/"

urlpatterns: list[URLPattern | URLResolver] = [
    path(f"{PROJECT}scorer-kinds/", api.Kinds.as_view(), name="api_scorer_kinds"),
    path(f"{PROJECT}scorers/", api.Scorers.as_view(), name="api_scorers"),
    path(f"{PROJECT}scorers/<int:scorer>/", api.ScorerDetail.as_view(), name="api_scorer"),
    path(f"{PROJECT}runs/", api.Runs.as_view(), name="api_runs"),
    path(f"{PROJECT}runs/<int:run>/", api.RunDetail.as_view(), name="api_run"),
    path(f"{PROJECT}runs/<int:run>/pause/", api.Pause.as_view(), name="api_run_pause"),
    path(f"{PROJECT}runs/<int:run>/resume/", api.Resume.as_view(), name="api_run_resume"),
    path(f"{PROJECT}runs/<int:run>/cancel/", api.Cancel.as_view(), name="api_run_cancel"),
    path(f"{PROJECT}runs/<int:run>/failures/", api.Failures.as_view(), name="api_run_failures"),
    path(f"{PROJECT}workers/", api.Workers.as_view(), name="api_workers"),
]
