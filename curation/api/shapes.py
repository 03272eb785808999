"""What figures look like in the API."""

from typing import Any

from rest_framework import serializers

from curation.stats.intervals import Estimate


class EstimateShape(serializers.Serializer[Estimate]):
    """A figure with its 95% interval and the number it rests on; a null value comes with its reason."""

    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    n = serializers.IntegerField()
    reason = serializers.CharField(allow_blank=True)
    note = serializers.CharField(allow_blank=True)

    class Meta:
        ref_name = "Estimate"


class FigureShape(serializers.Serializer[Any]):
    """A figure's finding in words, its Vega-Lite definition and the rows behind it."""

    name = serializers.CharField()
    title = serializers.CharField()
    finding = serializers.CharField()
    vega_lite = serializers.JSONField()
    data = serializers.JSONField()  # type: ignore[assignment]  # a field of ours, not the serializer's data

    class Meta:
        ref_name = "Figure"
