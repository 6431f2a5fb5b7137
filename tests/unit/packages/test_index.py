"""Where packages come from: the operator's index, else what the machine's pip is configured with; and no secret."""

from __future__ import annotations

from pathlib import Path

from workbench.packages.index import uv_environment


def _given(tmp_path: Path, text: str = "", **more: str) -> dict[str, str]:
    folder = tmp_path / ".config/pip"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pip.conf").write_text(text, encoding="utf-8")
    return {"HOME": str(tmp_path), "PATH": "/usr/bin", **more}


def test_the_operators_index_counts_before_the_machines(tmp_path: Path) -> None:
    given = _given(tmp_path, "[global]\nindex-url = https://pip.example.com/simple\n")
    assert (
        uv_environment(given, "https://own.example.com/simple")["UV_DEFAULT_INDEX"] == "https://own.example.com/simple"
    )
    assert uv_environment(given, "")["UV_DEFAULT_INDEX"] == "https://pip.example.com/simple"


def test_what_pip_is_configured_with_by_variables_and_files_is_used(tmp_path: Path) -> None:
    given = _given(
        tmp_path,
        "[global]\ncert = /etc/ca.pem\nextra-index-url =\n    https://more.example.com/simple\n    file:///srv/wheels\n",
        PIP_INDEX_URL="https://variable.example.com/simple",
    )
    told = uv_environment(given, "")
    assert told["UV_DEFAULT_INDEX"] == "https://variable.example.com/simple"
    assert (told["UV_INDEX"], told["SSL_CERT_FILE"]) == ("https://more.example.com/simple", "/etc/ca.pem")


def test_an_index_of_the_operators_is_the_only_one(tmp_path: Path) -> None:
    given = _given(tmp_path, "[global]\nextra-index-url = https://more.example.com/simple\n")
    assert "UV_INDEX" not in uv_environment(given, "https://own.example.com/simple")


def test_nothing_else_of_the_server_is_passed_on(tmp_path: Path) -> None:
    given = _given(tmp_path, WORKBENCH_LLM_KEY="secret", OPENAI_API_KEY="secret", HTTPS_PROXY="http://127.0.0.1:1")
    told = uv_environment(given, "")
    assert "secret" not in told.values()
    assert told["HTTPS_PROXY"] == "http://127.0.0.1:1"


def test_a_file_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    assert "UV_DEFAULT_INDEX" not in uv_environment(_given(tmp_path, "no section\n"), "")
