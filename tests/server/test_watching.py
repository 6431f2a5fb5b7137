"""Health, readiness, metrics and logs: enough for whoever watches, and nothing of what callers do."""

from __future__ import annotations

import secrets
import signal
from dataclasses import replace

import httpx2
import pytest
from tests.host.support import eventually
from tests.server.running import Running, make_key, problem_of, running

from workbench.model.access import Scope
from workbench.server.logs import Log
from workbench.server.serve import _options
from workbench.settings import Settings


def test_health_and_readiness_need_no_key(server: Running) -> None:
    with server.client("") as client:
        assert client.get("/healthz").json()["status"] == "ok"
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (200, "ok")
        assert set(ready.json()["checks"]) == {"records", "host"}


def test_a_server_whose_store_is_gone_lives_and_is_not_ready(settings: Settings) -> None:
    away = replace(settings, database_url="postgresql://nobody:hunter2@127.0.0.1:1/none")
    with running(away, with_key=False) as server, server.client("") as client:
        assert client.get("/healthz").status_code == 200
        ready = client.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")
        assert not ready.json()["checks"]["records"].startswith("ok")
        assert "hunter2" not in ready.text
        answer = client.get("/v1/sessions", headers={"x-api-key": "wbk_aaaaaaaaaaaa_bbb"})
        assert (answer.status_code, problem_of(answer)["code"]) == (503, "store_unavailable")
        assert answer.headers["x-should-retry"] in {"true", "false"}
        assert "hunter2" not in answer.text
    assert "hunter2" not in server.log.read_text(encoding="utf-8")


def test_metrics_count_requests_and_cells_and_name_nobody(server: Running, client: httpx2.Client, session: str) -> None:
    word = f"w{secrets.token_hex(6)}"
    client.post(f"/v1/sessions/{session}/cells", json={"code": f"print('{word}')"})
    client.post(f"/v1/sessions/{session}/cells", json={"code": "1/0"})
    client.get(f"/v1/sessions/{word}/{word}", params={word: word})
    with server.client("") as nobody:
        told = nobody.get("/metrics")
    assert told.headers["content-type"].startswith("text/plain")
    assert 'workbench_requests_total{method="POST",route="/v1/sessions/{session_id}/cells",status="200"}' in told.text
    assert 'workbench_cells_total{kind="cell",outcome="raised"}' in told.text
    assert "workbench_cells_running 0.0" in told.text
    assert "workbench_caretaker_looks_total" in told.text
    assert word not in told.text
    assert session not in told.text


def test_metrics_need_an_admin_as_soon_as_others_can_ask(server: Running) -> None:
    behind_a_proxy = {"x-forwarded-for": "203.0.113.9"}
    with server.client("") as nobody:
        assert nobody.get("/metrics", headers=behind_a_proxy).status_code == 401
    with server.client(make_key(server.settings, Scope.SESSIONS).presented) as some:
        assert some.get("/metrics", headers=behind_a_proxy).status_code == 403
    with server.client() as admin:
        assert admin.get("/metrics", headers=behind_a_proxy).status_code == 200


@pytest.mark.parametrize(
    "known", [{"public_url": "https://workbench.example.com"}, {"trusted_proxies": "127.0.0.1"}, {"listen_host": "::"}]
)
def test_metrics_are_closed_as_soon_as_others_are_expected(settings: Settings, known: dict[str, str]) -> None:
    assert _options(settings, "", Log()).metrics_open
    assert not _options(replace(settings, **known), "", Log()).metrics_open  # type: ignore[arg-type]


def test_metrics_of_a_server_that_others_reach_need_an_admin(settings: Settings) -> None:
    open_to_all = replace(settings, listen_host="0.0.0.0", allow_plain_http=True)
    with running(open_to_all) as server:
        with server.client("") as nobody:
            assert nobody.get("/metrics").status_code == 401
        with server.client() as admin:
            assert admin.get("/metrics").status_code == 200


def test_the_log_has_every_request_and_neither_code_outputs_nor_secrets(settings: Settings) -> None:
    secret, said, thought = (f"{kind}{secrets.token_hex(6)}" for kind in ("secret", "said", "thought"))
    with running(replace(settings, log_level="debug")) as server:
        with server.client() as client:
            body = {"id": "mine", "sandbox": {"env": {"PASSWORD": secret}, "start_up": f"s = '{said}'"}}
            client.post("/v1/sessions", json=body).raise_for_status()
            cell = client.post("/v1/sessions/mine/cells", json={"code": f"print('{said}')", "thought": thought})
            assert said in cell.json()["result"]["stdout"]["text"]
            token = client.post("/v1/sessions/mine/tokens").json()["token"]
            client.get("/v1/sessions", params={"user_id": secret})
            client.get(f"/v1/{secret}")
            client.post("/v1/sessions/mine/cells", content=f'{{"{said}', headers={"content-type": "application/json"})
            client.post("/v1/sessions/mine/cells", json={secret: 1})
            client.request("SECRET", f"/{secret}")
        with server.client(f"{server.key}x") as wrong:
            wrong.get("/v1/sessions", headers={"x-request-id": f"{secret} {secret}"})
        server.stop(signal.SIGTERM)
        text = server.log.read_text(encoding="utf-8")
        for word in (secret, said, thought, token, server.key, server.key.split("_", 2)[2]):
            assert word not in text
        lines = server.events()
    requests = [line for line in lines if line["event"] == "request"]
    run = next(line for line in requests if line.get("outcome") == "ok")
    assert run["route"] == "/v1/sessions/{session_id}/cells"
    assert (run["method"], run["status"], run["session"], run["project"]) == ("POST", 200, "mine", "default")
    assert run["key"] == server.key.split("_")[1]
    assert {"time", "level", "request_id", "ms"} <= set(run)
    assert "unauthenticated" in [line.get("outcome") for line in requests]
    assert [line["event"] for line in lines][-1] == "server.stop"


def test_the_caretaker_looks_by_itself(settings: Settings) -> None:
    with running(settings) as server, server.client("") as client:
        wanted = 'workbench_caretaker_looks_total{outcome="ok",round="look"}'
        eventually(lambda: wanted in client.get("/metrics").text, "the caretaker looked")
