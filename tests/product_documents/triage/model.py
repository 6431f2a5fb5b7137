"""A model that reads a mail and says how much of a hurry it is in, by its words: nothing in the question tells it."""

from __future__ import annotations

import json
import threading
import time

from tests.services.faulty_http import Answer, Asked, said, serve
from tests.services.model_server import ModelHandler

# How long it thinks: long enough that those who ask at once meet.
_THINKS_S = 0.3
_HURRY = ("today", "right now", "is down", "immediately")
MOST = "/_most"


class TriageHandler(ModelHandler):
    """Counts how many it was asked by at once."""

    lock = threading.Lock()
    now = most = 0

    def answer(self, asked: Asked) -> Answer:
        if asked.path == MOST:
            return said(TriageHandler.most)
        with TriageHandler.lock:
            TriageHandler.now += 1
            TriageHandler.most = max(TriageHandler.most, TriageHandler.now)
        time.sleep(_THINKS_S)
        with TriageHandler.lock:
            TriageHandler.now -= 1
        body = asked.json()
        mail = body["messages"][-1]["content"].lower().partition("mail:")[2]
        body["messages"][-1]["content"] = f"say:{'urgent' if any(word in mail for word in _HURRY) else 'later'}"
        return super().answer(Asked(asked.method, asked.path, asked.headers, json.dumps(body)))


if __name__ == "__main__":
    serve(TriageHandler)
