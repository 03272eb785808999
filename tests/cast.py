"""The people and things that tests tell their stories with.

bob is the researcher, charlie the adjudicator, alice, dave and erin annotate; mallory works in another project.
"""

import io
from dataclasses import dataclass

from PIL import Image, ImageDraw

from annotation import media, pictures
from annotation.items import text_hash
from annotation.models import Choice, Guideline, Item, Membership, Project, Question, Role, Tag, TagUse, Task, User
from annotation.tasks import create_tasks

PASSWORD = "a-long-test-password"


@dataclass
class Cast:
    """Memberships of one project."""

    project: Project
    alice: Membership
    bob: Membership
    charlie: Membership
    dave: Membership
    erin: Membership
    mallory: Membership  # of another project


def make_project(slug: str = "study", seed: int = 7, **fields: object) -> Project:
    return Project.objects.create(slug=slug, name=slug.title(), seed=seed, **fields)


def make_member(project: Project, username: str, role: Role) -> Membership:
    user, new = User.objects.get_or_create(username=username)
    if new:
        user.set_password(PASSWORD)
        user.save()
    return Membership.objects.create(project=project, user=user, role=role, number=project.memberships.count() + 1)


def make_cast() -> Cast:
    project = make_project()
    return Cast(
        project=project,
        alice=make_member(project, "alice", Role.ANNOTATOR),
        bob=make_member(project, "bob", Role.RESEARCHER),
        charlie=make_member(project, "charlie", Role.ADJUDICATOR),
        dave=make_member(project, "dave", Role.ANNOTATOR),
        erin=make_member(project, "erin", Role.ANNOTATOR),
        mallory=make_member(make_project("elsewhere"), "mallory", Role.RESEARCHER),
    )


def make_question(
    project: Project,
    slug: str = "toxicity",
    *,
    votes: int = 3,
    policy: str = "unanimous",
    choices: str = "yes no",
    tags: str = "",
    **options: object,
) -> Question:
    """A question whose hotkeys are the first letters of its choices and tags; the last-named tags go with the first choice."""
    question = Question.objects.create(
        project=project, slug=slug, title=slug.title(), prompt=f"Is it {slug}?", votes_required=votes, policy=policy, **options
    )
    for position, value in enumerate(choices.split()):
        use = TagUse.REQUIRED if tags and position == 0 else TagUse.NONE
        Choice.objects.create(
            question=question,
            value=value,
            label=value.title(),
            hotkey=value[0],
            position=position,
            tag_use=use,
            is_unsure=value == "unsure",
        )
    for position, value in enumerate(tags.split()):
        Tag.objects.create(question=question, value=value, label=value.title(), hotkey=str(position + 1), position=position)
    Guideline.objects.create(question=question, version=1, body="Judge with care.")
    return question


def make_items(project: Project, count: int, *, start: int = 0, **fields: object) -> list[Item]:
    texts = [f"A mild text, number {start + number}." for number in range(count)]
    return Item.objects.bulk_create(
        Item(project=project, kind="text", external_id=f"t{start + number}", text=text, content_hash=text_hash(text), **fields)
        for number, text in enumerate(texts)
    )


def make_tasks(question: Question, count: int) -> list[Task]:
    """`count` new items of the question's project, each with an open task."""
    items = make_items(question.project, count, start=question.project.items.count())
    create_tasks(question, [item.pk for item in items])
    return list(Task.objects.filter(question=question, item__in=items).order_by("rank"))


def draw(number: int, size: tuple[int, int] = (320, 240), form: str = "PNG") -> bytes:
    """A file with a picture that no other number has: a disc on a coloured ground, with its number."""
    image = Image.new("RGB", size, ((number * 37) % 200 + 30, (number * 91) % 200 + 30, 140))
    pen = ImageDraw.Draw(image)
    pen.ellipse((size[0] // 4, size[1] // 4, size[0] * 3 // 4, size[1] * 3 // 4), fill=((number * 53) % 256, 180, 90))
    pen.text((5, 5), f"picture {number}", fill="white")
    file = io.BytesIO()
    image.save(file, form)
    return file.getvalue()


def make_picture_items(project: Project, count: int, *, start: int = 0, prompt: str = "", **fields: object) -> list[Item]:
    """New image items with their pictures in the storage; with a prompt, each has one of its own as origin."""
    items = []
    for number in range(start, start + count):
        kept = media.keep(pictures.clean(draw(number)))
        origin = None
        if prompt:
            text = f"{prompt} {number}"
            origin = Item.objects.create(
                project=project, kind="text", external_id=f"prompt{number}", text=text, content_hash=text_hash(text)
            )
        items.append(
            Item.objects.create(
                project=project, kind="image", external_id=f"p{number}", media=kept, content_hash=bytes.fromhex(kept.pk), origin=origin,
                **fields,
            )
        )  # fmt: skip
    return items


def make_pictures(question: Question, count: int, **fields: object) -> list[Item]:
    """`count` new pictures of the question's project, each with an open task."""
    items = make_picture_items(question.project, count, start=question.project.items.count(), **fields)
    create_tasks(question, [item.pk for item in items])
    return items
