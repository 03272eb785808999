"""Items in, from a file: stored, previewed, mapped, and brought in by one transaction."""
