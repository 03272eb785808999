"""A program's side of the API in tests: real tokens, JSON in and out."""

import json
from typing import Any

from django.http import HttpResponse
from django.test import Client

from annotation import people
from annotation.models import Membership


class Program:
    """Speaks for one member, with a token of theirs."""

    def __init__(self, member: Membership) -> None:
        assert member.user is not None
        _, token = people.new_token(member.user)
        self.client = Client(headers={"Authorization": f"Token {token}"})
        self.base = f"/api/v1/projects/{member.project.slug}/"

    def get(self, path: str, **query: Any) -> HttpResponse:
        return self.client.get(self.base + path, query)

    def send(self, method: str, path: str, body: Any = None) -> HttpResponse:
        return self.client.generic(method, self.base + path, json.dumps(body or {}), "application/json")

    def post(self, path: str, **body: Any) -> HttpResponse:
        return self.send("POST", path, body)
