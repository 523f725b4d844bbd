"""A PostgreSQL server of the tests' own, whose connections can be cut, and which can be killed."""

import contextlib
import glob
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

KEEPER, KEEPERS_PASSWORD = "keeper", "not: for@show"
URL_OF_KEEPER = "keeper:not%3A%20for%40show"  # as URLs write it
_NUMBERS = count()


def _program(name: str) -> str | None:
    known = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)
    return next(iter([*known, *filter(None, [shutil.which(name)])]), None)


def _as_user() -> dict[str, object]:
    """Servers refuse to run as root: there, they run as the user that packages make for them."""
    if os.getuid():
        return {}
    import pwd

    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


class Server:
    """A server in a folder of its own, on a free port of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.user = folder, _as_user()
        if "user" in self.user:
            os.chown(folder, self.user["user"], self.user["group"])
        secret = folder / "secret"
        secret.write_text(KEEPERS_PASSWORD)
        secret.chmod(0o644)
        data = ["-D", str(folder / "data"), "-U", KEEPER, f"--pwfile={secret}"]
        self._run("initdb", *data, "-A", "scram-sha-256", "-E", "UTF8", "--no-locale", "-N")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.start()

    def _run(self, name: str, *options: str) -> None:
        line = [_program(name) or name, *options]
        subprocess.run(
            line,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            **self.user,
        )

    def start(self) -> None:
        given = (
            f"-p {self.port} -k {self.folder} -c listen_addresses=localhost -c max_connections=50"
        )
        log = ["-l", str(self.folder / "log"), "-w"]
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-o", given, *log, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")

    def kill(self) -> None:
        """Kill the server and all that it started, as a power cut does, and start it again."""
        first = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        own = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(first)], capture_output=True, text=True, check=False
        )
        for one in (first, *map(int, own.stdout.split())):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        for _ in range(200):  # it does not start before all that shared its memory are gone
            with contextlib.suppress(subprocess.CalledProcessError):
                self.start()
                return
            time.sleep(0.1)

    def url(self, name: str | None = None, who: str = URL_OF_KEEPER, port: int = 0) -> str:
        """Return the URL of a ledger; of a new one, if no name is given."""
        name = name or f"of_{os.getpid()}_{next(_NUMBERS)}"
        return f"postgresql://{who}@127.0.0.1:{port or self.port}/postgres?ledger={name}"

    def by_socket(self, url: str) -> str:
        """Return the URL of the same ledger, reached by another way."""
        return f"{url.replace(f'127.0.0.1:{self.port}', '')}&host={self.folder}&port={self.port}"

    def terminate(self) -> None:
        """End all connections of others."""
        self.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'dpframe'"
        )

    def run(self, *statements: str, **others: str) -> list[tuple[object, ...]]:
        """Run statements, by default as the one who may do everything; return the last answer."""
        import psycopg

        usual = {"user": KEEPER, "password": KEEPERS_PASSWORD, "dbname": "postgres"}
        given = {"host": "127.0.0.1", "port": self.port, **usual, **others}
        with psycopg.connect(**given, autocommit=True) as connection:
            for statement in statements:
                done = connection.execute(statement)
            return done.fetchall() if done.description else []


@contextlib.contextmanager
def server_of_tests() -> Iterator[Server]:
    """Start a server, or skip the test, saying why."""
    if _program("initdb") is None:
        pytest.skip("PostgreSQL is not installed here")
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg")
    with tempfile.TemporaryDirectory(prefix="dpframe-pg-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        server = Server(Path(folder))
        try:
            yield server
        finally:
            server.stop()


def table_of(url: str) -> str:
    return f"dpframe.{url.partition('ledger=')[2].partition('&')[0]}"


class Proxy:
    """A way to a server that is cut when a spend is committed.

    Parameters
    ----------
    port
        Of the server.
    cut
        When: "before" the server hears of it, "after" it was committed, or, "late", before; then
        the server hears of it a second later. `None`: never.
    forever
        Whether the way stays closed.
    """

    def __init__(self, port: int, cut: str | None = None, *, forever: bool = False) -> None:
        self.cut, self._to, self._forever = cut, port, forever
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.passed: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Refuse whoever comes from now on."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def cut_all(self) -> None:
        """Cut all that are on their way."""
        for one in self.passed:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self.passed.clear()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self._listening.accept()[0]
                self.passed.append(client)
                threading.Thread(target=self._pass_on, args=[client], daemon=True).start()

    def _pass_on(self, client: socket.socket) -> None:
        spends = False
        with contextlib.suppress(OSError), client:
            with socket.create_connection(("127.0.0.1", self._to)) as server:
                while True:
                    ready, _, _ = select.select([client, server], [], [])
                    for one in ready:
                        sent = one.recv(1 << 16)
                        if not sent:
                            return
                        spends = spends or b"INSERT INTO" in sent
                        if one is client and self.cut and spends and b"COMMIT" in sent:
                            self._end(client, server, sent)
                            return
                        (client if one is server else server).sendall(sent)

    def _end(self, client: socket.socket, server: socket.socket, sent: bytes) -> None:
        cut, self.cut = self.cut, None
        if self._forever:
            self.close()
        if cut == "late":
            client.shutdown(socket.SHUT_RDWR)
            time.sleep(1)
        if cut != "before":
            server.sendall(sent)
            server.recv(1 << 16)
