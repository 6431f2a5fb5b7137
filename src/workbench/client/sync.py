"""The client for ordinary programs. `AsyncWorkbench` in aio.py has the same names."""

from __future__ import annotations

import atexit
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType

from workbench.client import _requests
from workbench.client._sending import DEFAULT_RETRY_FOR_S, DEFAULT_TIMEOUT_S, Sender, Target
from workbench.client.local import LocalServer
from workbench.client.session import Session
from workbench.client.toolkits import AuthConfigs, Connections, Toolkits
from workbench.client.values import SandboxOptions, ScopeName
from workbench.wire import rest


class Keys:
    """Keys of the project; for keys with the scope `admin`."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def create(
        self, label: str = "", *, scopes: Iterable[ScopeName] = ("sessions",), lifetime_s: int | None = None
    ) -> rest.NewKey:
        """A new one. This is the only time that its secret is shown."""
        return self._sender.send(_requests.create_key(label, scopes, lifetime_s))

    def list(self) -> list[rest.Key]:
        """All of them, oldest first."""
        return self._sender.send(_requests.list_keys())

    def rotate(self, id: str, *, overlap_s: int = 24 * 3600) -> rest.NewKey:  # noqa: A002
        """A new one in place of this one, which stays good for a while."""
        return self._sender.send(_requests.rotate_key(id, overlap_s))

    def revoke(self, id: str) -> rest.Key:  # noqa: A002
        """No good from now on; for tokens as well."""
        return self._sender.send(_requests.revoke_key(id))


class Workbench:
    """A server, and the sessions in it. May be used by many threads at once."""

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        retry_for_s: float = DEFAULT_RETRY_FOR_S,
    ) -> None:
        """Values that are not given come from OPEN_WORKBENCH_URL and OPEN_WORKBENCH_API_KEY.

        `timeout_s` is the longest silence of the server, not the longest cell: those have their own limit.
        `retry_for_s` is how long a server that went away is waited for, where asking again is safe.

        Raises:
            Unauthenticated: there is no key.
            InvalidRequest: an address or a time that cannot be used.
        """
        target = Target(base_url, api_key, timeout_s=timeout_s, retry_for_s=retry_for_s)
        self._sender = Sender(target)
        self._server: LocalServer | None = None
        self.url = target.url
        self.keys = Keys(self._sender)
        self.toolkits = Toolkits(self._sender)
        self.connections = Connections(self._sender)
        self.auth_configs = AuthConfigs(self._sender)

    @classmethod
    def local(cls, data_dir: str | Path | None = None, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> Workbench:
        """A server of this program's own, on this machine, which ends with the program or with `close`.

        With `data_dir` its sessions are there the next time; without, nothing is left of them.

        Raises:
            ServerUnavailable: it could not be started; the message has what it said.
        """
        server = LocalServer.start(data_dir)
        try:
            bench = cls(server.url, server.key, timeout_s=timeout_s)
        except BaseException:
            server.close()
            raise
        bench._server = server
        bench._sender.watch(server.lost)
        atexit.register(bench.close)
        return bench

    def create(
        self,
        user_id: str = "local",
        *,
        sandbox: SandboxOptions | Mapping[str, object] | None = None,
        workbench: SandboxOptions | Mapping[str, object] | None = None,
        id: str | None = None,  # noqa: A002
        runtime: str | None = None,
        eager: bool = False,
    ) -> Session:
        """A new session of a user of yours. `workbench` is another name for `sandbox`.

        `runtime` is its language: "python" unless given, "node", "r", or what else the server has.

        Raises:
            Conflict: there is a session of this id.
            InvalidRequest: an option that there is not, or a value that it cannot have.
            KernelUnavailable: it is `eager`, and its language is not on the machine; the message has what to install.
        """
        request = _requests.create_session(
            user_id, sandbox=sandbox, workbench=workbench, id=id, runtime=runtime, eager=eager
        )
        made = self._sender.send(request)
        return Session(self._sender, made.id, made.user_id, runtime=made.runtime)

    def use(self, session_id: str) -> Session:
        """A session that exists.

        Raises:
            NotFound: it does not, or not in the project of the key.
        """
        found = self._sender.send(_requests.get_session(session_id))
        return Session(self._sender, found.id, found.user_id, runtime=found.runtime)

    def sessions(self, user_id: str | None = None) -> Iterator[Session]:
        """Those of a user, or all of the project, by name; asks for the next page when it is needed."""
        cursor: str | None = None
        while True:
            page = self._sender.send(_requests.list_sessions(user_id, cursor))
            for found in page.items:
                yield Session(self._sender, found.id, found.user_id, runtime=found.runtime)
            if (cursor := page.next_cursor) is None:
                return

    def delete_user(self, user_id: str) -> int:
        """Delete a user's sessions, files and history for good; tells how many sessions that were."""
        return self._sender.send(_requests.delete_user(user_id))

    def corrections(self) -> list[rest.RuleCount]:
        """How often each rule of the corrections had something to do in the project."""
        return self._sender.send(_requests.count_corrections())

    def audit(self, *, before: str = "", session: str = "", limit: int = 100) -> list[rest.AuditEntry]:
        """Who made, changed and deleted sessions and keys, newest first; `before` is a time, for the next page."""
        return self._sender.send(_requests.list_audit(before, session, limit))

    def close(self) -> None:
        """Its connections, and its server if it has one of its own. May be called twice."""
        atexit.unregister(self.close)
        self._sender.close()
        if self._server is not None:
            self._server.close()

    def __enter__(self) -> Workbench:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.url}>"
