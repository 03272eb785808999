from django.urls import URLPattern, URLResolver, path

from scoring import views

urlpatterns: list[URLPattern | URLResolver] = [
    path("p/<slug:project>/scorers/", views.scorers, name="scorers"),
    path("p/<slug:project>/scorers/new/", views.scorer_new, name="scorer_new"),
    path("p/<slug:project>/runs/", views.listing, name="runs"),
    path("p/<slug:project>/runs/<int:run>/", views.run, name="run"),
    path("p/<slug:project>/runs/<int:run>/pause/", views.pause, name="run_pause"),
    path("p/<slug:project>/runs/<int:run>/resume/", views.resume, name="run_resume"),
    path("p/<slug:project>/runs/<int:run>/cancel/", views.cancel, name="run_cancel"),
]
