"""manage.py with the slow scorer, and with a shorter silence where ASSAY_TEST_SILENCE names one (seconds)."""

import os
import sys
from datetime import timedelta
from pathlib import Path

if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    sys.path.insert(0, str(here.parent.parent))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    import scoring.scorers
    from scoring import runs, working

    scoring.scorers.__path__.append(str(here / "kinds"))
    if silence := os.environ.get("ASSAY_TEST_SILENCE"):
        runs.SILENCE = timedelta(seconds=float(silence))
        working.BEAT = float(silence) / 5
    from django.core.management import execute_from_command_line

    execute_from_command_line(["manage.py", *sys.argv[1:]])
