"""Settings, from the environment. docs/operators.md lists every variable."""

import contextlib
import os
import secrets
import sys
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from config import embedded, env, logs, media

BASE_DIR = Path(__file__).resolve().parent.parent
DATA = env.folder("ASSAY_DATA", BASE_DIR / "data")
DEBUG = env.flag("ASSAY_DEBUG", False)
TESTING = "pytest" in sys.modules
HTTPS = env.flag("ASSAY_HTTPS", False)
LOG_LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR"]

# ------------------------------------------------------------------ servers
# With no DATABASE_URL this is a self-contained installation: PostgreSQL, Redis and the secret key live in the data folder.
EMBEDDED = embedded.prepare(DATA) if not env.text("DATABASE_URL", "") else None


def database(url: str) -> dict[str, object]:
    """Django's settings for a postgresql:// address; `host=` in its query names a socket folder."""
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql"):
        raise ImproperlyConfigured("DATABASE_URL must begin with postgresql://. Other databases cannot hold the queue's invariants.")
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": query.pop("host", parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 600,
        "CONN_HEALTH_CHECKS": True,
        # The queue asks for its statements to be prepared, once a connection and with one plan: planning them anew each time
        # would cost more than running them. Nothing else is prepared: that is what the high threshold says.
        "OPTIONS": {"prepare_threshold": 2**31, "options": "-c plan_cache_mode=force_generic_plan", **query},
        # Held by env so that several checkouts can test on one server.
        "TEST": {"NAME": env.text("ASSAY_TEST_DATABASE", "test_assay")},
    }


if EMBEDDED:
    if "mypy" not in sys.modules:  # which reads these settings, and needs no servers
        EMBEDDED.ensure(with_redis=not env.text("REDIS_URL", ""))
    DATABASES = {"default": database(EMBEDDED.database_url)}
    REDIS_URL = env.text("REDIS_URL", f"unix://{EMBEDDED.redis_socket}")
    _broker = f"redis+socket://{EMBEDDED.redis_socket}" if REDIS_URL.startswith("unix:") else REDIS_URL
else:
    DATABASES = {"default": database(env.text("DATABASE_URL"))}
    REDIS_URL = env.text("REDIS_URL")
    _broker = REDIS_URL.replace("unix://", "redis+socket://")
CELERY_BROKER_URL = env.text("CELERY_BROKER_URL", _broker)


def secret_key() -> str:
    """From the environment; a self-contained installation makes its own once and keeps it in the data folder."""
    if not EMBEDDED:
        return env.text("SECRET_KEY")
    if given := env.text("SECRET_KEY", ""):
        return given
    kept = DATA / "secret_key"
    if not kept.exists():
        # Whole or not at all, and the first one stays: two commands may start at once.
        making = DATA / f"secret_key.{os.getpid()}"
        making.touch(mode=0o600)
        making.write_text(secrets.token_urlsafe(64))
        with contextlib.suppress(FileExistsError):
            os.link(making, kept)
        making.unlink()
    return kept.read_text()


SECRET_KEY = secret_key()
ALLOWED_HOSTS = env.words("ASSAY_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = env.words("ASSAY_ORIGINS")

CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "assay-test" if TESTING else "assay",
    }
}

# ------------------------------------------------------------------ the application
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "allauth",
    "allauth.account",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "csp",
    "pgtrigger",
    "pghistory",
    "annotation",
    "scoring",
    "curation",
    "workers",
    "config.apps.Assay",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "config.middleware.Private",
    "config.middleware.RequestLog",
    "config.middleware.Audit",
    "config.middleware.Unhurried",
    "config.middleware.Errors",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": ["annotation.templatetags.look"],
        },
    }
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_THOUSAND_SEPARATOR = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

STATIC_URL = "static/"
STATIC_ROOT = DATA / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": media.storage(env.text("ASSAY_MEDIA", str(DATA / "media"))),
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if TESTING or DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
WHITENOISE_USE_FINDERS = TESTING or DEBUG

# ------------------------------------------------------------------ people
AUTH_USER_MODEL = "annotation.User"
AUTHENTICATION_BACKENDS = ["annotation.accounts.Accounts"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.ScryptPasswordHasher", "django.contrib.auth.hashers.PBKDF2PasswordHasher"]
if TESTING:
    PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "home"
ACCOUNT_ADAPTER = "annotation.accounts.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_RATE_LIMITS = {"login": "30/m/ip", "login_failed": "10/m/ip,5/5m/key"}
SESSION_ENGINE = "django.contrib.sessions.backends.cached_db"
SESSION_COOKIE_AGE = 60 * 60 * 12
SESSION_COOKIE_NAME = "assay_session"
CSRF_COOKIE_NAME = "assay_csrf"
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
MESSAGE_TAGS = {20: "", 25: "ok", 30: "warn", 40: "danger"}  # the look's names for info, success, warning, error

# ------------------------------------------------------------------ API
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["config.api_requests.Tokens", "rest_framework.authentication.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["config.api_requests.Json", "rest_framework.parsers.MultiPartParser"],
    "DEFAULT_PAGINATION_CLASS": "config.api.Pages",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "config.api.problem",
    "PAGE_SIZE": 100,
}
REST_KNOX = {"TOKEN_TTL": timedelta(days=365), "AUTO_REFRESH": False}
SPECTACULAR_SETTINGS = {
    "TITLE": "Assay",
    "DESCRIPTION": "Human ground truth against machine scores. Send `Authorization: Token <token>`; make one with `manage.py token`.",
    "VERSION": "1",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "ENUM_NAME_OVERRIDES": {
        "ItemKind": "annotation.models.Kind",
        "FlagReason": "annotation.models.FlagReason",
        "TaskState": "annotation.models.TaskState",
    },
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums", "config.api_docs.with_problems"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

# ------------------------------------------------------------------ safety
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "font-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$"]  # load balancers ask over plain HTTP
SECURE_HSTS_SECONDS = 60 * 60 * 24 * 365 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
if env.flag("ASSAY_BEHIND_PROXY", False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    ALLAUTH_TRUSTED_PROXY_COUNT = 1  # else all tries to sign in come from the proxy's address, and one guesser locks everyone out
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
FILE_UPLOAD_TEMP_DIR = DATA / "uploads"
FILE_UPLOAD_TEMP_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
MAX_TEXT_LENGTH = 100_000  # characters of one item
MODEL_FOLDERS = env.words("ASSAY_MODEL_FOLDERS", str(DATA / "models"))  # where pages and API may take models from

# ------------------------------------------------------------------ work
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_DEFAULT_QUEUE = "cpu"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False

# ------------------------------------------------------------------ logs
LOGGING = logs.settings(env.one_of("ASSAY_LOG_LEVEL", "WARNING" if TESTING else "INFO", LOG_LEVELS), messages=DEBUG or TESTING)
