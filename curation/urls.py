from django.urls import URLPattern, URLResolver, path

from curation.views import agreement, comparisons, exporting, overview, runs

urlpatterns: list[URLPattern | URLResolver] = [
    # how it stands; what to score
    path("p/<slug:project>/", overview.show, name="overview"),
    path("p/<slug:project>/runs/new/", runs.new, name="run_new"),
    # the way out
    path("p/<slug:project>/export/", exporting.export, name="export"),
    path("p/<slug:project>/export/items.<slug:form>", exporting.export_file, name="export_file"),
    # where machine meets human
    path("p/<slug:project>/agreement/", agreement.first, name="agreement"),
    path("p/<slug:project>/agreement/<slug:question>/", agreement.of_question, name="agreement_question"),
    path("p/<slug:project>/agreement/<slug:question>/figures/<slug:name>.<slug:kind>", agreement.figure, name="agreement_figure"),
    path("p/<slug:project>/comparisons/", comparisons.listing, name="comparisons"),
    path("p/<slug:project>/comparisons/new/", comparisons.new, name="comparison_new"),
    path("p/<slug:project>/comparisons/<int:comparison>/", comparisons.comparison, name="comparison"),
    path("p/<slug:project>/comparisons/<int:comparison>/items/", comparisons.items, name="comparison_items"),
    path("p/<slug:project>/comparisons/<int:comparison>/figures/<slug:name>.<slug:kind>", comparisons.figure, name="comparison_figure"),
]
