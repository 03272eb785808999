"""Published layouts that come with their votes: each is a small file that knows one, reads it as rows, and maps it.

A row then has ordinary columns, and for each question one whose cell is a list of votes: objects with answer, rater, tags,
comment, time, elapsed (milliseconds).
"""

from curation.importing import readers
from curation.importing.formats import doccano, label_studio, nibbler
from curation.importing.formats.common import Ready

READY: dict[str, Ready] = {
    "nibbler": Ready("Adversarial Nibbler JSON", nibbler.recognised, nibbler.blocks, nibbler.mapping),
    "label_studio": Ready("Label Studio JSON", label_studio.recognised, label_studio.blocks, label_studio.mapping),
    "doccano": Ready("doccano JSON lines", doccano.recognised, doccano.blocks, doccano.mapping),
}
readers.READY.update(READY)
readers.FORMATS.update({name: ready.words for name, ready in READY.items()})
