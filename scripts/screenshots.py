"""Takes the README's pictures: starts a demo on a scratch data folder and looks at it in a real browser.

make screenshots
"""

import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser import ARGUMENTS, executable

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "images"
SIZE = {"width": 1280, "height": 800}
# name, who, address, dark
SHOTS = [
    ("labelling", "alice", "/p/demo/label/toxicity/", False),
    ("labelling-dark", "dave", "/p/demo/label/naturalness/", True),
    ("practice", "alice", "/p/demo-images/label/image_harm/", False),
    ("consent", "dave", "/p/demo-images/consent/", False),
    ("adjudication", "charlie", "/p/demo/disputes/toxicity/", False),
    ("overview", "bob", "/p/demo/", False),
    ("progress", "bob", "/p/demo-images/questions/image_harm/progress/", False),
    ("raters", "bob", "/p/demo-images/raters/image_harm/", False),
    ("agreement", "bob", "/p/demo-images/agreement/image_harm/", False),
    ("known", "bob", "/p/demo-images/questions/image_harm/known/", False),
    ("comparison", "bob", "/p/demo/comparisons/1/", False),
]


@contextmanager
def demo(password: str) -> Iterator[str]:
    """A demo that serves on a free port, from a data folder that is gone afterwards. Yields its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="assay-") as folder:
        environment = {**os.environ, "ASSAY_DATA": f"{folder}/data", "ASSAY_DEMO_PASSWORD": password, "ASSAY_LOG_LEVEL": "ERROR"}

        def manage(*arguments: str) -> "subprocess.Popen[bytes]":
            return subprocess.Popen([sys.executable, "manage.py", *arguments], cwd=ROOT, env=environment)

        for command in (("migrate", "--verbosity", "0"), ("demo",)):
            if manage(*command).wait():
                sys.exit(f"manage.py {command[0]} failed.")
        serve = manage("serve", "--port", str(port), "--workers", "1")
        try:
            wait_for(f"http://127.0.0.1:{port}/healthz")
            yield f"http://127.0.0.1:{port}"
        finally:
            serve.terminate()
            serve.wait()


def wait_for(address: str) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(address, timeout=2).close()  # noqa: S310 - ours
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
        else:
            return
    sys.exit("The demo did not start.")


def signed_in(browser: Browser, address: str, username: str, password: str, *, dark: bool) -> Page:
    page = browser.new_context(viewport=SIZE, color_scheme="dark" if dark else "light", base_url=address).new_page()
    page.goto("/sign-in/")
    page.fill("[name=login]", username)
    page.fill("[name=password]", password)
    page.press("[name=password]", "Enter")
    page.wait_for_url(lambda url: "sign-in" not in url)
    return page


def main() -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    password = secrets.token_urlsafe(12)
    with demo(password) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=ARGUMENTS)
        for name, username, path, dark in SHOTS:
            page = signed_in(browser, address, username, password, dark=dark)
            answer = page.goto(path)
            if answer is None or not answer.ok:
                sys.exit(f"{path} does not show.")
            page.wait_for_load_state("networkidle")
            page.screenshot(path=PICTURES / f"{name}.png")
            page.context.close()
        browser.close()


if __name__ == "__main__":
    main()
