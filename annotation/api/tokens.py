"""Your own tokens: made here, shown once, ended here."""

from drf_spectacular.utils import extend_schema
from knox.models import AuthToken
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotation import access, people
from annotation.api.fields import View


class TokenShape(serializers.Serializer[AuthToken]):
    key = serializers.CharField(source="token_key", help_text="The token's first 15 characters.")
    created_at = serializers.DateTimeField(source="created")
    ends_at = serializers.DateTimeField(source="expiry", allow_null=True, help_text="A year after it was made.")

    class Meta:
        ref_name = "Token"


class NewTokenShape(serializers.Serializer[object]):
    key = serializers.CharField()
    token = serializers.CharField(help_text="Shown this once; it is stored hashed.")

    class Meta:
        ref_name = "NewToken"


class Tokens(View):
    @extend_schema(operation_id="tokens", tags=["tokens"], responses=TokenShape(many=True))
    def get(self, request: Request) -> Response:
        """Your tokens, newest first."""
        return Response(TokenShape(people.tokens(access.person(request.user)), many=True).data)

    @extend_schema(operation_id="token_add", tags=["tokens"], request=None, responses={201: NewTokenShape})
    def post(self, request: Request) -> Response:
        """Make a token that speaks for you."""
        token, text = people.new_token(access.person(request.user))
        return Response({"key": token.token_key, "token": text}, status=status.HTTP_201_CREATED)


class Token(View):
    @extend_schema(operation_id="token_revoke", tags=["tokens"], responses={204: None})
    def delete(self, request: Request, key: str) -> Response:
        """End one of your tokens at once."""
        people.revoke_token(access.person(request.user), key)
        return Response(status=status.HTTP_204_NO_CONTENT)
