from django.urls import URLPattern, URLResolver, path

from curation.views import agreement, comparisons, disagreement, exporting, importing, items, overview, raters, runs, samples, steering

urlpatterns: list[URLPattern | URLResolver] = [
    # how it stands; what to score
    path("p/<slug:project>/", overview.show, name="overview"),
    path("p/<slug:project>/runs/new/", runs.new, name="run_new"),
    # items in, items seen, samples and tasks
    path("p/<slug:project>/imports/", importing.listing, name="imports"),
    path("p/<slug:project>/imports/new/", importing.new, name="import_new"),
    path("p/<slug:project>/imports/<uuid:batch>/", importing.batch, name="import_batch"),
    path("p/<slug:project>/items/", items.listing, name="items"),
    path("p/<slug:project>/items/<int:item>/", items.item, name="item"),
    path("p/<slug:project>/samples/", samples.listing, name="samples"),
    path("p/<slug:project>/samples/new/", samples.new, name="sample_new"),
    path("p/<slug:project>/samples/<int:sample>/", samples.sample, name="sample"),
    path("p/<slug:project>/tasks/new/", samples.tasks, name="tasks_new"),
    # how a question goes on, and what to do about it
    path("p/<slug:project>/questions/<slug:question>/progress/", steering.show, name="steering"),
    path("p/<slug:project>/questions/<slug:question>/progress/figures/<slug:name>.<slug:kind>", steering.figure, name="steering_figure"),
    # the way out
    path("p/<slug:project>/export/", exporting.export, name="export"),
    path("p/<slug:project>/export/items.<slug:form>", exporting.export_file, name="export_file"),
    # where machine meets human
    path("p/<slug:project>/agreement/", agreement.first, name="agreement"),
    path("p/<slug:project>/agreement/<slug:question>/", agreement.of_question, name="agreement_question"),
    path("p/<slug:project>/agreement/<slug:question>/figures/<slug:name>.<slug:kind>", agreement.figure, name="agreement_figure"),
    path("p/<slug:project>/agreement/<slug:question>/differences/", agreement.differences, name="agreement_differences"),
    path("p/<slug:project>/raters/<slug:question>/", raters.listing, name="raters"),
    path("p/<slug:project>/raters/<slug:question>/<int:number>/", raters.one, name="rater"),
    path("p/<slug:project>/raters/<slug:question>/figures/<slug:name>.<slug:kind>", raters.figure, name="raters_figure"),
    path("p/<slug:project>/questions/<slug:question>/disagreements/", disagreement.of_question, name="disagreements"),
    path("p/<slug:project>/questions/<slug:question>/disagreements/tasks/", disagreement.tasks, name="disagreement_tasks"),
    path(
        "p/<slug:project>/questions/<slug:question>/disagreements/figures/<slug:name>.<slug:kind>",
        disagreement.figure,
        name="disagreement_figure",
    ),
    path("p/<slug:project>/comparisons/", comparisons.listing, name="comparisons"),
    path("p/<slug:project>/comparisons/new/", comparisons.new, name="comparison_new"),
    path("p/<slug:project>/comparisons/<int:comparison>/", comparisons.comparison, name="comparison"),
    path("p/<slug:project>/comparisons/<int:comparison>/items/", comparisons.items, name="comparison_items"),
    path("p/<slug:project>/comparisons/<int:comparison>/figures/<slug:name>.<slug:kind>", comparisons.figure, name="comparison_figure"),
]
