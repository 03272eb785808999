"""The kinds of scorers. A module of this folder with a `KIND` is one: there is no list to keep."""

import importlib
import pkgutil
from functools import cache

from scoring.scorers.base import Kind


@cache
def kinds() -> dict[str, Kind]:
    """Every kind by its name, in the order of their titles."""
    modules = (importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    found = [module.KIND for module in modules if hasattr(module, "KIND")]
    return {kind.name: kind for kind in sorted(found, key=lambda kind: kind.title)}
