"""One family of refusals: what is wrong, in words a person can act on, with a code a program can test.

Services raise them; `config.middleware.Errors` turns them into a page and `config.api.problem` into problem JSON.
"""

from collections.abc import Mapping


class Refused(Exception):
    """A request that cannot be done as asked. `fields` names the inputs at fault."""

    status = 400
    code = "refused"

    def __init__(self, message: str, *, code: str = "", fields: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.fields = dict(fields or {})


class Invalid(Refused):
    """The input does not say something possible."""

    code = "invalid"


class Forbidden(Refused):
    """Signed in, but this role may not do this."""

    status = 403
    code = "forbidden"


class Missing(Refused):
    """No such thing, or none that this person may know of."""

    status = 404
    code = "missing"


class Busy(Refused):
    """Possible in a moment: others are at the same rows. Sending it again is safe."""

    status = 503
    code = "busy"


class Conflict(Refused):
    """Possible once, not as things stand now."""

    status = 409
    code = "conflict"
