"""What makes an item the same item."""

import hashlib


def text_hash(text: str) -> bytes:
    """SHA-256 over the text in UTF-8: 32 bytes."""
    return hashlib.sha256(text.encode()).digest()
