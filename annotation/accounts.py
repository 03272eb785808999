"""Sign-in: accounts are made by researchers and operators, never by visitors."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.auth_backends import AuthenticationBackend
from allauth.core.internal import ratelimit
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from annotation.lookup import Lookup
from annotation.models import User

COUNTED = {1: "One try is", 2: "Two tries are", 3: "Three tries are", 4: "Four tries are"}


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    error_messages = {
        **DefaultAccountAdapter.error_messages,
        "too_many_login_attempts": "Too many wrong tries. Sign-in rests for 5 minutes; nothing else is lost.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:  # noqa: ARG002 - allauth's
        return False

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:  # noqa: ARG002 - allauth's
        """Remembers how many tries the rate limit still grants, for the message."""
        rates = ratelimit.get_rates(app="allauth.account", action="login_failed")
        used = [len(cache.get(usage.cache_key, ())) for usage in self._login_failed_rl_usage.usage]
        request.sign_in_tries_left = min(rate.amount - count for rate, count in zip(rates, used, strict=True))  # type: ignore[attr-defined]

    def validation_error(self, code: str, *args: Any) -> ValidationError:
        if code != "username_password_mismatch":
            error: ValidationError = super().validation_error(code, *args)
            return error
        left = getattr(self.request, "sign_in_tries_left", None)
        if left == 0:
            return ValidationError("That pair does not match. Sign-in now rests for 5 minutes.", code=code)
        tail = f" {COUNTED.get(left, f'{left} tries are')} left, then a pause of 5 minutes." if left else ""
        return ValidationError(f"That pair does not match.{tail}", code=code)


_find_active = Lookup(User, "FROM annotation_user WHERE id = %s AND is_active")


class Accounts(AuthenticationBackend):  # type: ignore[misc]  # allauth has no types
    """Sign-in by name and password, rate-limited by allauth."""

    def get_user(self, user_id: int) -> User | None:
        """Who a session belongs to; asked on every request, so in plain SQL. None once the account is switched off."""
        return _find_active(user_id)
