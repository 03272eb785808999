from django.urls import URLPattern, URLResolver, path

from curation.api import agreement, comparisons, exporting, overview, runs

PROJECT = "projects/<slug:project>/"

urlpatterns: list[URLPattern | URLResolver] = [
    # how it stands; what to score
    path(f"{PROJECT}overview/", overview.OverviewView.as_view(), name="api_overview"),
    path(f"{PROJECT}runs/over/", runs.RunsOver.as_view(), name="api_runs_over"),
    path(f"{PROJECT}runs/coverage/", runs.Coverage.as_view(), name="api_runs_coverage"),
    # the way out
    path(f"{PROJECT}export/jsonl/", exporting.JsonLines.as_view(), name="api_export_jsonl"),
    path(f"{PROJECT}export/csv/", exporting.Csv.as_view(), name="api_export_csv"),
    # where machine meets human
    path(f"{PROJECT}agreement/<slug:question>/", agreement.OfQuestion.as_view(), name="api_agreement"),
    path(f"{PROJECT}comparisons/", comparisons.Listing.as_view(), name="api_comparisons"),
    path(f"{PROJECT}comparisons/<int:comparison>/", comparisons.Single.as_view(), name="api_comparison"),
    path(f"{PROJECT}comparisons/<int:comparison>/result/", comparisons.Outcome.as_view(), name="api_comparison_result"),
    path(f"{PROJECT}comparisons/<int:comparison>/items/", comparisons.Items.as_view(), name="api_comparison_items"),
    path(f"{PROJECT}comparisons/<int:comparison>/figures/<slug:name>/", comparisons.FigureView.as_view(), name="api_comparison_figure"),
]
