"""The app: routes, what goes before and behind them, and the answers to everything that has no route."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from workbench import __version__
from workbench.errors import InternalError, InvalidRequest, MethodNotAllowed, NotFound, WorkbenchError
from workbench.server import docs, health
from workbench.server.answers import refusal
from workbench.server.background import answer_calls, count_down, keep_house
from workbench.server.composio import auth_configs as composio_auth_configs
from workbench.server.composio import connected_accounts as composio_accounts
from workbench.server.composio import execute as composio_execute
from workbench.server.composio import mounts as composio_mounts
from workbench.server.composio import sessions as composio_sessions
from workbench.server.composio import tools as composio_tools
from workbench.server.composio.reading import WrongBody
from workbench.server.composio.routes import Api
from workbench.server.connect import ConnectDoor
from workbench.server.door import Door, Note
from workbench.server.files.door import FilesDoor
from workbench.server.front import Front
from workbench.server.mcp import McpDoor
from workbench.server.openapi import document
from workbench.server.questions import NotJson, refused_parameters
from workbench.server.refusals import API, api_refusal, told
from workbench.server.rest import (
    audit,
    cells,
    connections,
    contexts,
    corrections,
    files,
    keys,
    sessions,
    state,
    toolkits,
    users,
)
from workbench.server.service import ServerOptions, Service

# In the order in which they are tried: what is asked for most is found first.
_ROUTERS = (cells.router, cells.commands, sessions.router, state.router, files.router, contexts.router, keys.router,
            users.router, connections.router, toolkits.router, corrections.router, audit.router,
            health.router)  # fmt: skip
# Of the sessions API; each of them twice, as it has two addresses.
_APIS: tuple[Api, ...] = (
    composio_sessions.api,
    composio_mounts.api,
    composio_execute.api,
    composio_tools.api,
    composio_accounts.api,
    composio_auth_configs.api,
)


def make_app(service: Service, options: ServerOptions) -> FastAPI:
    """An app on the service. What it starts runs between its start-up and its shut-down; the service is not closed."""
    door = Door(service, options)
    app = FastAPI(
        title="Open Workbench",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    app.state.door = door
    app.state.mcp = McpDoor(door)
    for router in _ROUTERS:
        # Not by include_router, which looks twice at every request.
        app.router.routes.extend(router.routes)
    for api in _APIS:
        app.router.routes.extend(api.routes)
    app.router.routes.extend(app.state.mcp.routes())
    app.state.files = FilesDoor(door)
    app.router.routes.append(app.state.files.route())
    app.router.routes.extend(ConnectDoor(door).routes())
    _add_documents(app, options)
    app.add_exception_handler(WorkbenchError, _refused)
    app.add_exception_handler(NotJson, _not_json)
    app.add_exception_handler(WrongBody, _wrong_body)
    app.add_exception_handler(RequestValidationError, _bad_parameters)
    app.add_exception_handler(HTTPException, _no_route)
    app.add_middleware(Front, door=door)
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    door: Door = app.state.door
    door.kept.start(keep_house(door), "caretaker")
    door.kept.start(answer_calls(door), "calls from sandboxes")
    door.kept.start(count_down(door), "the last seconds")
    try:
        yield
    finally:
        door.stopping.set()
        # Before anything is cancelled, so that it is not taken for called off by its client.
        door.leaving.set()
        await app.state.mcp.aclose()
        await app.state.files.aclose()
        await door.kept.aclose()


def _add_documents(app: FastAPI, options: ServerOptions) -> None:
    # Made for who asks first, and beside what else is served: it costs as much as a third of a server's start.
    made: list[dict[str, Any]] = []
    making = asyncio.Lock()

    async def described() -> dict[str, Any]:
        async with making:
            if not made:
                made.append(await asyncio.to_thread(document, app, options))
        return made[0]

    async def openapi(_: Request) -> Response:
        return JSONResponse(await described())

    async def shown(_: Request) -> Response:
        page = docs.page(await described())
        return HTMLResponse(page, headers={"content-security-policy": docs.CONTENT_POLICY})

    app.add_route("/openapi.json", openapi, methods=["GET"])
    app.add_route("/docs", shown, methods=["GET"])


def _noted(request: Request, error: WorkbenchError) -> str:
    note: Note = request.scope["workbench.note"]
    note.outcome = error.code
    return note.request_id


async def _refused(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, WorkbenchError)
    return told(request.scope, problem, _noted(request, problem))


async def _not_json(request: Request, problem: Exception) -> Response:
    error = InvalidRequest(str(problem))
    if request.scope["path"].startswith(API):
        return api_refusal(error, _noted(request, error))
    return refusal(error, _noted(request, error), status=400)


async def _wrong_body(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, WrongBody)
    return api_refusal(problem.problem, _noted(request, problem.problem), errors=problem.errors)


async def _bad_parameters(request: Request, problem: Exception) -> Response:
    assert isinstance(problem, RequestValidationError)
    error = refused_parameters(problem)
    return told(request.scope, error, _noted(request, error))


async def _no_route(request: Request, problem: Exception) -> Response:
    """The answer of the router to what it does not know, in our words."""
    assert isinstance(problem, HTTPException)
    path = request.url.path
    if problem.status_code == 405:
        allowed = _methods_at(request.app, path)
        error: WorkbenchError = MethodNotAllowed(
            f"{request.method[:20]} is not for this address, which takes {allowed}; /docs lists all", {"allow": allowed}
        )
        return told(request.scope, error, _noted(request, error), {"allow": allowed})
    if problem.status_code == 404:
        error = NotFound(_no_such_address(request.app, path), {"path": path[:200]})
    else:
        error = InternalError("the server cannot answer this; its log has the request's id")
    return told(request.scope, error, _noted(request, error))


def _routes(app: FastAPI) -> list[Route]:
    return [route for route in app.router.routes if isinstance(route, Route)]


def _methods_at(app: FastAPI, path: str) -> str:
    """All that this address takes: the router names only those of the first route that it finds."""
    fitting = [route for route in _routes(app) if route.path_regex.match(path)]
    # An address of its own is not one of those with a name in that place, which it could be one of.
    own = [route for route in fitting if route.path == path] or fitting
    found = {method for route in own for method in route.methods or ()}
    return ", ".join(sorted(found)) or "GET"


def _no_such_address(app: FastAPI, path: str) -> str:
    near = difflib.get_close_matches(path, {route.path for route in _routes(app)}, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"no such address: {path[:200]}; {hint}/docs lists all there are"
