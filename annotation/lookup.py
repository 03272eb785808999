"""One row by plain SQL, as a model: for the two questions that every request asks, and the ORM would write anew each time."""

from typing import Generic, TypeVar

from django.db import connection, models

M = TypeVar("M", bound=models.Model)


class Lookup(Generic[M]):
    """`Lookup(Model, "FROM … WHERE …")`; calling it with the parameters gives the row, or None. JSON columns load when asked for."""

    def __init__(self, model: type[M], rest: str) -> None:
        fields = [field for field in model._meta.concrete_fields if not isinstance(field, models.JSONField)]
        table = model._meta.db_table
        self.model = model
        self.names = [field.attname for field in fields]
        self.sql = f"SELECT {', '.join(f'{table}.{field.column}' for field in fields)} {rest}"

    def __call__(self, *parameters: int | str) -> M | None:
        with connection.cursor() as cursor:
            cursor.execute(self.sql, parameters)
            row = cursor.fetchone()
        return None if row is None else self.model.from_db(connection.alias, self.names, row)
