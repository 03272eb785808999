from django.urls import URLPattern, URLResolver, path

from curation.views import exporting

urlpatterns: list[URLPattern | URLResolver] = [
    # the way out
    path("p/<slug:project>/export/", exporting.export, name="export"),
    path("p/<slug:project>/export/items.<slug:form>", exporting.export_file, name="export_file"),
]
