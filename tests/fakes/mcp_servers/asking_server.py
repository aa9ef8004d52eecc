"""A server of tools that asks a person for facts, as a server of its era does: `--era legacy` or `--era modern`.

Standard library only, as `stdlib_server`, whose options it has. `fill` puts the form of its arguments `times` times,
one after the other, and says what came back; `capabilities` says what the client told of itself.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import stdlib_server
from stdlib_server import ANY, Server, Tools, text

OWN_META = "io.modelcontextprotocol/clientCapabilities"


class AskingTools(Tools):
    server: AskingServer

    def fill(self, params: dict[str, Any], number: object) -> dict[str, Any] | None:
        arguments = params["arguments"]
        asked = {"message": "Where to?", "requestedSchema": {"type": "object", "properties": {}}, **arguments["form"]}
        times = arguments.get("times", 1)
        if self.server.options.era == "legacy":
            return text(json.dumps([self.server.ask("elicitation/create", asked) for _ in range(times)]))
        state = json.loads(params.get("requestState") or "[]")
        if "inputResponses" in params:
            state.append(params["inputResponses"]["question"])
        if len(state) == times:
            return text(json.dumps(state))
        requests = {"question": {"method": "elicitation/create", "params": asked}}
        result = {"resultType": "input_required", "inputRequests": requests, "requestState": json.dumps(state)}
        self.wire.send({"id": number, "result": result})
        return None

    def capabilities(self, params: dict[str, Any], _number: object) -> dict[str, Any]:
        meta = params.get("_meta") or {}
        return text(json.dumps(meta.get(OWN_META, self.server.client)))

    def unasked(self, _params: dict[str, Any], _number: object) -> dict[str, Any]:
        """Ask when no call runs: once this one was answered."""
        threading.Timer(0.1, self.server.ask_and_note).start()
        return text("later")


class AskingServer(Server):
    """Keeps what waits for an answer by its id, so that several calls may ask at once."""

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.tools = AskingTools(self.wire, self)
        self.client: dict[str, Any] = {}
        self._waiting: dict[str, tuple[threading.Event, list[Any]]] = {}
        self._lock = threading.Lock()

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        with self._lock:
            number = f"asked-{len(self._waiting)}"
            came, answers = self._waiting[number] = (threading.Event(), [])
        self.wire.send({"id": number, "method": method, "params": params})
        came.wait(stdlib_server.FOREVER_S)
        return answers[0]

    def ask_and_note(self) -> None:
        form = {"message": "Late?", "requestedSchema": {"type": "object", "properties": {}}}
        self.tools.note(json.dumps(self.ask("elicitation/create", form)))

    def read(self) -> None:
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if "method" in message:
                if message["method"] == "initialize":
                    self.client = message["params"]["capabilities"]
                if "id" in message:
                    self.answer(message["id"], message["method"], message.get("params") or {})
            else:
                came, answers = self._waiting[message["id"]]
                answers.append(message.get("result") or message.get("error"))
                came.set()

    def listed(self) -> list[Any]:
        return [{"name": name, "inputSchema": ANY} for name in ("fill", "capabilities", "unasked")]


stdlib_server.Server = AskingServer  # what its `main` starts

if __name__ == "__main__":
    stdlib_server.main()
