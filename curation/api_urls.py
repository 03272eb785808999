from django.urls import URLPattern, URLResolver, path

from curation.api import agreement, comparisons, disagreement, exporting, imports, items, overview, raters, runs, samples, steering

PROJECT = "projects/<slug:project>/"

urlpatterns: list[URLPattern | URLResolver] = [
    # how it stands; what to score
    path(f"{PROJECT}overview/", overview.OverviewView.as_view(), name="api_overview"),
    path(f"{PROJECT}runs/over/", runs.RunsOver.as_view(), name="api_runs_over"),
    path(f"{PROJECT}runs/coverage/", runs.Coverage.as_view(), name="api_runs_coverage"),
    # items in, items seen, samples and tasks
    path(f"{PROJECT}imports/", imports.Imports.as_view(), name="api_imports"),
    path(f"{PROJECT}imports/<uuid:batch>/", imports.Import.as_view(), name="api_import"),
    path(f"{PROJECT}items/", items.Items.as_view(), name="api_items"),
    path(f"{PROJECT}items/<int:item>/", items.OneItem.as_view(), name="api_item"),
    path(f"{PROJECT}samples/", samples.Samples.as_view(), name="api_samples"),
    path(f"{PROJECT}samples/<int:sample>/items/", samples.OneSample.as_view(), name="api_sample_items"),
    path(f"{PROJECT}tasks/over/", samples.TasksOver.as_view(), name="api_tasks_over"),
    # how a question goes on
    path(f"{PROJECT}questions/<slug:question>/steering/", steering.Progress.as_view(), name="api_steering"),
    path(f"{PROJECT}questions/<slug:question>/people/", steering.Assigned.as_view(), name="api_assigned"),
    # the way out
    path(f"{PROJECT}export/jsonl/", exporting.JsonLines.as_view(), name="api_export_jsonl"),
    path(f"{PROJECT}export/csv/", exporting.Csv.as_view(), name="api_export_csv"),
    # where machine meets human
    path(f"{PROJECT}agreement/<slug:question>/", agreement.OfQuestion.as_view(), name="api_agreement"),
    path(f"{PROJECT}agreement/<slug:question>/differences/", agreement.Differences.as_view(), name="api_agreement_differences"),
    path(f"{PROJECT}raters/<slug:question>/", raters.OfQuestion.as_view(), name="api_raters"),
    path(f"{PROJECT}raters/<slug:question>/pairs/", raters.PairsView.as_view(), name="api_rater_pairs"),
    path(f"{PROJECT}raters/<slug:question>/figures/<slug:name>/", raters.FigureView.as_view(), name="api_raters_figure"),
    path(f"{PROJECT}questions/<slug:question>/disagreements/", disagreement.OfQuestion.as_view(), name="api_disagreements"),
    path(f"{PROJECT}questions/<slug:question>/disagreements/tasks/", disagreement.Tasks.as_view(), name="api_disagreement_tasks"),
    path(f"{PROJECT}comparisons/", comparisons.Listing.as_view(), name="api_comparisons"),
    path(f"{PROJECT}comparisons/<int:comparison>/", comparisons.Single.as_view(), name="api_comparison"),
    path(f"{PROJECT}comparisons/<int:comparison>/result/", comparisons.Outcome.as_view(), name="api_comparison_result"),
    path(f"{PROJECT}comparisons/<int:comparison>/items/", comparisons.Items.as_view(), name="api_comparison_items"),
    path(f"{PROJECT}comparisons/<int:comparison>/figures/<slug:name>/", comparisons.FigureView.as_view(), name="api_comparison_figure"),
]
