from django.urls import URLPattern, URLResolver, path

from curation.api import exporting

PROJECT = "projects/<slug:project>/"

urlpatterns: list[URLPattern | URLResolver] = [
    # the way out
    path(f"{PROJECT}export/jsonl/", exporting.JsonLines.as_view(), name="api_export_jsonl"),
    path(f"{PROJECT}export/csv/", exporting.Csv.as_view(), name="api_export_csv"),
]
