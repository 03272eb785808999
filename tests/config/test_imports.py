"""Who may import whom: the house's rules, read from the code itself.

Human side, machine side and the place where they meet are cut apart by imports: that an annotator never sees a score
is then a fact of the import graph.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APPS = ("annotation", "scoring", "curation")
OURS = (*APPS, "workers", "config")
# What else of annotation the faces of scoring (views, api, commands, tags) may take: who may come in, and how to refuse.
FACES = ("views", "api", "urls", "api_urls", "management", "templatetags", "forms")
FOR_FACES = ("annotation.models", "annotation.access", "annotation.errors", "annotation.templatetags")
# And its services: the models, and how to refuse.
FOR_SERVICES = ("annotation.models", "annotation.errors")
PURE = ("annotation.resolution", "curation.stats", "scoring.scorers")
HEAVY = ("torch", "transformers", "sklearn", "joblib", "profanity_check", "onnxruntime", "open_clip")


@dataclass(frozen=True)
class Import:
    """One import: `module` at `line` takes `target`; `at_once` unless it is inside a function or for types only."""

    module: str
    path: Path
    line: int
    target: str
    at_once: bool

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.module} imports {self.target}"


def within(name: str, *packages: str) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def modules() -> Iterator[tuple[str, Path]]:
    for top in OURS:
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            if "migrations" not in parts:
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports_of(module: str, path: Path) -> Iterator[Import]:
    tree = ast.parse(path.read_text(), str(path))
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]

    def visit(node: ast.AST, at_once: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for name in child.names:
                    yield Import(module, path, child.lineno, name.name, at_once)
            elif isinstance(child, ast.ImportFrom):
                base = child.module or ""
                if child.level:
                    above = package.split(".")[: len(package.split(".")) - child.level + 1]
                    base = ".".join([*above, *([child.module] if child.module else [])])
                for name in child.names:
                    # `from annotation import models` takes the module annotation.models.
                    whole = f"{base}.{name.name}"
                    is_module = (ROOT / Path(*whole.split("."))).with_suffix(".py").exists() or (ROOT / Path(*whole.split("."))).is_dir()
                    yield Import(module, path, child.lineno, whole if is_module else base, at_once)
            else:
                lazy = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or _for_types_only(child)
                yield from visit(child, at_once and not lazy)

    yield from visit(tree, True)


def _for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


@pytest.fixture(scope="module")
def imports() -> list[Import]:
    return [found for module, path in modules() for found in imports_of(module, path)]


def none_of(breaches: list[Import], rule: str) -> None:
    assert not breaches, rule + "\n" + "\n".join(map(str, breaches))


def is_face(module: str) -> bool:
    return any(part in FACES for part in module.split(".")[1:])


def test_annotation_takes_no_sibling(imports: list[Import]) -> None:
    none_of(
        [one for one in imports if within(one.module, "annotation") and within(one.target, "scoring", "curation")],
        "annotation, the human side, takes nothing of scoring or curation: no score can reach a voter.",
    )


def test_scoring_takes_nothing_of_curation_and_only_the_models_of_annotation(imports: list[Import]) -> None:
    def allowed(one: Import) -> bool:
        return within(one.target, *(FOR_FACES if is_face(one.module) else FOR_SERVICES))

    none_of(
        [one for one in imports if within(one.module, "scoring") and within(one.target, "curation")],
        "scoring takes nothing of curation: it gets the ids of what to score from there.",
    )
    none_of(
        [one for one in imports if within(one.module, "scoring") and within(one.target, "annotation") and not allowed(one)],
        "scoring takes only annotation.models and annotation.errors; its views, api and commands annotation.access too.",
    )


def test_only_faces_take_workers(imports: list[Import]) -> None:
    none_of(
        [one for one in imports if within(one.module, *APPS) and within(one.target, "workers") and not is_face(one.module)],
        "Services and models never import workers: views, api and commands enqueue, on commit.",
    )


def test_services_never_import_what_shows_them(imports: list[Import]) -> None:
    def shows(target: str) -> bool:
        return within(target, *APPS) and any(
            part in ("views", "api", "urls", "api_urls", "forms", "management") for part in target.split(".")[1:]
        )

    none_of(
        [one for one in imports if within(one.module, *APPS) and shows(one.target) and not is_face(one.module)],
        "Inside an app: pure modules <- models <- services <- views, api, commands. A service takes nothing of these last.",
    )


def test_models_take_no_services(imports: list[Import]) -> None:
    models = tuple(f"{app}.models" for app in APPS)
    none_of(
        [one for one in imports if within(one.module, *models) and within(one.target, *APPS) and not within(one.target, *models, *PURE)],
        "Models take only models and pure modules.",
    )


def test_pure_modules_know_no_django(imports: list[Import]) -> None:
    impure = ("django", "rest_framework", "pghistory", "pgtrigger", "knox", "celery", "workers", "config")
    none_of(
        [one for one in imports if within(one.module, *PURE) and within(one.target, *impure)],
        "resolution, stats and scorers import no Django: they can be read and tested alone.",
    )
    none_of(
        [one for one in imports if within(one.module, *PURE) and within(one.target, *OURS) and not within(one.target, *PURE)],
        "resolution, stats and scorers take nothing of ours but each other.",
    )


def test_heavy_libraries_are_imported_by_scorers_and_workers_only(imports: list[Import]) -> None:
    models = [name for name in HEAVY if name != "sklearn"]  # whose metrics curation.stats may use
    none_of(
        [
            one
            for one in imports
            if within(one.target, *models) and not within(one.module, "scoring.scorers", "scoring.training", "workers")
        ],
        "torch and its like belong to scoring.scorers, which only workers run.",
    )
    none_of(
        [one for one in imports if within(one.target, *HEAVY) and one.at_once],
        "torch and its like are imported inside the function that needs them, so that naming a scorer costs nothing.",
    )


def test_the_web_process_never_loads_a_heavy_library() -> None:
    """All addresses and templates' tags loaded, as the web server does: none of the heavy libraries has come along."""
    code = f"""
import sys
from config.wsgi import application
from django.urls import get_resolver
from django.core.checks import run_checks
get_resolver().url_patterns
run_checks()
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip().splitlines()[-1] == "[]"
