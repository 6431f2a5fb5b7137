"""The address of links by which accounts are connected. Who has a link needs no key; it is in no log."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from workbench.core.connection_links import ConnectionLinks
from workbench.core.connection_requests import Authorize, FinishByFields, LinkView, Returned
from workbench.errors import InvalidRequest, NotFound, WorkbenchError
from workbench.model.access import Caller, new_secret
from workbench.model.toolkit import AuthKind
from workbench.server import connect_page as page
from workbench.server.addresses import reached_by
from workbench.server.door import Door, Note
from workbench.server.limits import has_body, read_form
from workbench.wire.problems import status_of

PREFIX = "/connect"
CALLBACK = f"{PREFIX}/callback"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_COOKIE = "workbench_connect"
_COOKIE_S = 1800
# What browsers say of a link on a page of the same origin.
_FROM_HERE = "same-origin"
_MOST_FORM = 64 * 1024
# Of what a service sends back; more is nobody's code.
_MOST_CODE = 8192

Handler = Callable[[Request], Awaitable[Response]]


class ConnectDoor:
    """The endpoint. Owned by the app."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def routes(self) -> list[Route]:
        """For the app; the first that fits is taken."""
        return [
            Route(CALLBACK, self._told(self._returned), methods=["GET"]),
            Route(f"{PREFIX}/{{token}}", self._told(self._shown), methods=["GET"]),
            Route(f"{PREFIX}/{{token}}", self._told(self._filled_in), methods=["POST"]),
            Route(f"{PREFIX}/{{token}}/authorize", self._told(self._sent_away), methods=["GET"]),
            Route(f"{PREFIX}/{{token}}/device", self._told(self._device), methods=["GET"]),
        ]

    @property
    def _links(self) -> ConnectionLinks:
        return self._door.service.links

    def _told(self, handler: Handler) -> Handler:
        """What goes wrong is told to a person."""

        async def answered(request: Request) -> Response:
            note: Note = request.scope["workbench.note"]
            if request.method != "POST" and has_body(request.headers):
                note.body_left = True
            try:
                response = await handler(request)
            except WorkbenchError as problem:
                note.outcome = problem.code
                response = HTMLResponse(page.failed(_sentence(problem.message)), status_of(problem))
            for name, value in page.HEADERS.items():
                response.headers[name] = value
            if note.body_left:
                response.headers["connection"] = "close"
            return response

        return answered

    async def _shown(self, request: Request) -> Response:
        token = _token(request)
        view = await self._links.look(token)
        if view.link.finished_at:
            return HTMLResponse(page.finished(view))
        shown = HTMLResponse(page.choosing(view, token))
        self._mark(shown, request, _browser(request) or new_secret())
        return shown

    async def _filled_in(self, request: Request) -> Response:
        token = _token(request)
        note: Note = request.scope["workbench.note"]
        # BARRIER: who has no good link is refused before a byte of the body is read; held by
        # tests/connections/test_page.py.
        note.body_left = True
        view = await self._links.look(token)
        form = await read_form(Headers(scope=request.scope), request.receive, _MOST_FORM)
        note.body_left = False
        try:
            kind = AuthKind(form.get("kind", ""))
            values = {name.removeprefix("field."): value for name, value in form.items() if name != "kind"}
            account = await self._links.finish(FinishByFields(token=token, kind=kind, values=values))
        except ValueError:
            raise InvalidRequest("the form does not say how to connect; open the link again") from None
        except InvalidRequest as problem:
            note.outcome = problem.code
            await self._note(view, problem.code)
            return HTMLResponse(page.choosing(view, token, _sentence(problem.message)), status_of(problem))
        if account.is_active:
            await self._note(view, "ok")
        # To the same address, so that to load it again sends nothing a second time.
        return RedirectResponse(f"./{token}", 303)

    async def _sent_away(self, request: Request) -> Response:
        token, address = _token(request), reached_by(request.scope, self._door.options)
        browser = _browser(request)
        # BARRIER: who lures a stranger to this address would have the stranger's account, if the service grants what it
        # granted before without asking: so first a person sees for whom it is, and goes on from there; held by
        # tests/connections/test_page.py.
        came_from = request.headers.get("sec-fetch-site")
        if came_from != _FROM_HERE if came_from is not None else not browser:
            await self._links.look(token)
            return RedirectResponse(f"../{token}", 303)
        browser = browser or new_secret()
        there = await self._links.authorize(
            Authorize(token=token, redirect_uri=f"{address}{CALLBACK}", browser=browser)
        )
        response = RedirectResponse(there, 303)
        self._mark(response, request, browser)
        return response

    def _mark(self, response: Response, request: Request, browser: str) -> None:
        """The browser, by which it is known when it comes back."""
        address = reached_by(request.scope, self._door.options)
        response.set_cookie(
            _COOKIE,
            browser,
            max_age=_COOKIE_S,
            path=f"{urlsplit(address).path}{PREFIX}",
            secure=address.startswith("https:"),
            httponly=True,
            # The service sends the person back from its own site.
            samesite="lax",
        )

    async def _returned(self, request: Request) -> Response:
        said = request.query_params
        code, state = said.get("code", ""), said.get("state", "")
        if not _TOKEN.fullmatch(state) or len(code) > _MOST_CODE:
            raise NotFound("this is no answer to anything that was asked here; open the link again that you were given")
        view = await self._links.returned(
            Returned(state=state, browser=_browser(request), code=code, error=said.get("error", ""))
        )
        await self._note(view, "ok" if view.account.is_active else "failed")
        back = page.way_back(view)
        if back:
            return RedirectResponse(back, 303)
        return HTMLResponse(page.finished(view))

    async def _device(self, request: Request) -> Response:
        token = _token(request)
        view = await self._links.look(token)
        if view.link.finished_at:
            return HTMLResponse(page.finished(view))
        shown = await self._links.device(token)
        if shown.account.is_active:
            await self._note(view, "ok")
            return HTMLResponse(page.finished(await self._links.look(token)))
        return HTMLResponse(page.device(view, shown))

    async def _note(self, view: LinkView, outcome: str) -> None:
        """Without a key: who has a link needs none. Never what was filled in."""
        account = view.account
        caller = Caller(project=account.project, scopes=frozenset())
        try:
            await self._door.service.access.note(
                caller,
                "connection.finish",
                user=account.user,
                outcome=outcome,
                detail=f"{account.toolkit} {account.id} by link",
            )
        except WorkbenchError as problem:
            self._door.log.event("error", "audit.lost", outcome=problem.code)


def _token(request: Request) -> str:
    token: str = request.path_params["token"]
    if not _TOKEN.fullmatch(token):
        raise NotFound("no such link: see that all of it was copied, or ask for a new one")
    return token


def _browser(request: Request) -> str:
    given = request.cookies.get(_COOKIE, "")
    return given if _TOKEN.fullmatch(given) else ""


def _sentence(message: str) -> str:
    return f"{message[:1].upper()}{message[1:]}"
