"""A project to try everything on: 200 mild texts of our own, simulated raters, a scorer's run and a comparison."""
