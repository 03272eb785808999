"""Twenty simulated people label two hundred pictures while web processes are killed: the crowd benchmark in short."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHORT = ["--people", "20", "--tasks", "200", "--kills", "2", "--seconds", "12", "--floor-seconds", "0"]


def test_a_crowd_is_looked_after_and_nothing_is_lost_while_processes_die() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.crowd", *SHORT], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]
    found = json.loads(run.stdout.splitlines()[-1])
    must_be_zero = ("overassigned", "lost", "duplicates", "budget_breaches", "gold_wrong", "errors", "stuck")
    assert {name: found[name] for name in must_be_zero} == dict.fromkeys(must_be_zero, 0), run.stderr[-3000:]
    assert found["kills"] == 2
    assert found["votes"] > 0
    assert found["checks"] > 0
    assert found["pictures"] > 0
