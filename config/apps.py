"""The composition root as an app, so that its checks are found."""

from django.apps import AppConfig


class Assay(AppConfig):
    name = "config"
    verbose_name = "Assay"

    def ready(self) -> None:
        from config import checks  # noqa: F401, PLC0415 - registers them
