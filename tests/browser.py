"""The browser of the browser tests and of the screenshots."""

import os
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def executable() -> str | None:
    """ASSAY_CHROMIUM, the system's Chromium or Chrome, or the one Playwright installed; None when there is none."""
    if named := os.environ.get("ASSAY_CHROMIUM"):
        return named
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if found := shutil.which(name):
            return found
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if own and Path(own).exists() else None
