"""Items over the API: the browser's filters, and one item with all that was said of it."""

from typing import Any

from django.urls import reverse
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotation import access
from annotation.errors import Missing
from annotation.models import Item, Kind, TaskState
from config.api import LARGEST_ID, read_query
from curation import browsing


class ItemsQuery(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(Kind.choices, default=None)
    batch = serializers.UUIDField(default=None, help_text="The import that brought it.")
    sample = serializers.IntegerField(default=None, min_value=1, max_value=LARGEST_ID)
    metadata_key = serializers.CharField(default=None, max_length=200)
    metadata_value = serializers.CharField(default=None, max_length=1000)
    question = serializers.IntegerField(default=None, min_value=1, max_value=LARGEST_ID, help_text="The id: it has a task of it.")
    state = serializers.ChoiceField(TaskState.choices, default=None)
    truth = serializers.IntegerField(default=None, min_value=1, max_value=LARGEST_ID, help_text="The id of a choice: its ground truth.")
    scorer = serializers.IntegerField(default=None, min_value=1, max_value=LARGEST_ID)
    score = serializers.CharField(default=None, max_length=60, help_text="The score's name; of `scorer`.")
    score_from = serializers.FloatField(default=None)
    score_to = serializers.FloatField(default=None)
    origin = serializers.IntegerField(default=None, min_value=1, max_value=LARGEST_ID)
    text = serializers.CharField(default=None, max_length=200, help_text="Words in the text; reads every text.")
    after = serializers.IntegerField(default=None, min_value=0, max_value=LARGEST_ID, help_text="The last id of the page before.")
    size = serializers.IntegerField(default=browsing.PAGE, min_value=1, max_value=500)
    contents = serializers.BooleanField(default=False, help_text="With the texts and the metadata's values.")


class ItemTask(serializers.Serializer[Any]):
    question = serializers.CharField(source="question.slug")
    state = serializers.CharField()
    votes = serializers.IntegerField(source="vote_count")
    votes_required = serializers.IntegerField()


class ItemPicture(serializers.Serializer[Any]):
    hash = serializers.CharField(help_text="SHA-256 of the stored file.")
    format = serializers.CharField(help_text="jpeg or png.")
    width = serializers.IntegerField()
    height = serializers.IntegerField()
    bytes = serializers.IntegerField()
    thumbnail = serializers.CharField(help_text="Its address.")


class ItemTruth(serializers.Serializer[Any]):
    question = serializers.CharField(source="question.slug")
    choice = serializers.CharField(source="choice.value")
    tags = serializers.ListField(child=serializers.CharField())
    source = serializers.CharField()  # type: ignore[assignment]


class ItemScore(serializers.Serializer[Any]):
    scorer = serializers.CharField(source="scorer.name")
    version = serializers.IntegerField(source="scorer.version")
    name = serializers.CharField()
    value = serializers.FloatField()


class ItemShape(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="item.pk")
    external_id = serializers.CharField(source="item.external_id")
    kind = serializers.CharField(source="item.kind")
    origin = serializers.CharField(source="item.origin.external_id", default=None)
    batch = serializers.UUIDField(source="item.batch")
    quarantined = serializers.BooleanField(source="item.quarantined")
    picture = serializers.SerializerMethodField(help_text="null: a text, an image without its file, or one that nobody is shown.")
    metadata_keys = serializers.SerializerMethodField()
    text = serializers.SerializerMethodField()
    metadata = serializers.SerializerMethodField()
    tasks = ItemTask(many=True)
    truths = ItemTruth(many=True)
    scores = ItemScore(many=True)

    class Meta:
        ref_name = "Item"

    def get_metadata_keys(self, row: browsing.Row) -> list[str]:
        return list(row.item.metadata)

    @extend_schema_field(ItemPicture(allow_null=True))
    def get_picture(self, row: browsing.Row) -> dict[str, Any] | None:
        if row.picture is None:
            return None
        found = row.picture
        return {
            "hash": found.pk, "format": found.format, "width": found.width, "height": found.height, "bytes": found.size,
            "thumbnail": reverse("api_thumbnail", args=[self.context["project"], row.item.pk]),
        }  # fmt: skip

    def get_text(self, row: browsing.Row) -> str | None:
        return row.item.text if self.context.get("contents") and not row.item.quarantined else None

    def get_metadata(self, row: browsing.Row) -> dict[str, Any] | None:
        return row.item.metadata if self.context.get("contents") else None


class ItemsPage(serializers.Serializer[Any]):
    count = serializers.IntegerField(allow_null=True, help_text="null: more than 10,000, or not counted.")
    next = serializers.IntegerField(allow_null=True, help_text="Ask again with `after` set to this; null: that was all.")
    results = ItemShape(many=True)


class Items(APIView):
    @extend_schema(operation_id="items", tags=["items"], parameters=[ItemsQuery], responses=ItemsPage)
    def get(self, request: Request, project: str) -> Response:
        """Items that fit, in the order of ids, with tasks, ground truth and scores. Texts on request."""
        member = access.researcher(request.user, project)
        given = read_query(ItemsQuery, request)
        filters = browsing.Filters(**{name: given[name] for name in browsing.Filters.__dataclass_fields__})
        page = browsing.page(member.project, filters, after=given["after"], size=given["size"])
        rows = ItemShape(page.rows, many=True, context={"contents": given["contents"], "project": project}).data
        return Response({"count": page.count, "next": page.after, "results": rows})


class OneItem(APIView):
    @extend_schema(operation_id="item", tags=["items"], responses=ItemShape)
    def get(self, request: Request, project: str, item: int) -> Response:
        """One item, with its content."""
        member = access.researcher(request.user, project)
        found = Item.objects.select_related("origin", "media").filter(project=member.project, pk=item).first()
        if found is None:
            raise Missing("There is no such item in this project.")
        return Response(ItemShape(browsing.row(found), context={"contents": True, "project": project}).data)
