"""The page for people."""

from __future__ import annotations

from typing import Any

from workbench.server.docs import page


def test_nothing_of_the_document_becomes_part_of_the_page() -> None:
    evil = "<script>alert(1)</script>"
    document: dict[str, Any] = {
        "info": {"title": evil, "version": evil, "description": f"{evil} and `{evil}`"},
        "servers": [{"url": f"http://x/{evil}"}],
        "tags": [{"name": "tag", "description": evil}],
        "components": {"schemas": {"Shape": {"properties": {evil: {"type": evil, "default": evil}}}}},
        "paths": {
            f"/{evil}": {
                "get": {
                    "operationId": "get", "summary": evil, "description": evil, "tags": ["tag"],
                    "parameters": [{"name": evil, "in": "query", "schema": {"enum": [evil]}}],
                    "responses": {"200": {"description": evil, "content": {evil: {"schema": {}}}}},
                }
            }
        },
    }  # fmt: skip
    made = page(document)
    assert "<script" not in made
    assert made.count("&lt;script") > 8


def test_words_between_marks_are_code_and_a_lone_mark_is_itself() -> None:
    document: dict[str, Any] = {
        "info": {"title": "t", "version": "1", "description": "use `this`\n\na lone ` mark"},
        "servers": [{"url": "/"}],
        "tags": [],
        "components": {"schemas": {}},
        "paths": {},
    }
    made = page(document)
    assert "<p>use <code>this</code></p>" in made
    assert "<p>a lone ` mark</p>" in made
