"""A language server that does wrong in the way that its first argument names; `good` is in order."""

import json
import os
import sys
import time
from typing import Any

WRONG, TOP = (*sys.argv[1:3], "", "")[:2]
OUT = sys.stdout.buffer
ASKED = ("definition", "references", "hover", "problems", "symbols")
AT = {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 9}}
EDIT = {"range": AT, "newText": "other"}
URI = f"file://{TOP}/a.py"
PLACES = {
    "outside": ["file:///etc/passwd", f"file://{TOP}/../secret.py", f"file://{TOP}/out.py"],
    "no file": ["http://example.org/a.py", "file://elsewhere/a.py", "a.py", 7, None, f"{URI}%00", "file:"],
}
EDITS: dict[str, Any] = {
    "edit outside": {"changes": {URI: [EDIT], f"file://{TOP}/../secret.py": [EDIT]}},
    "edit behind a link": {"changes": {URI: [EDIT], f"file://{TOP}/out.py": [EDIT]}},
    "edit of punie's files": {"changes": {URI: [EDIT], f"file://{TOP}/.punie/config.py": [EDIT]}},
    "edit of git's files": {"changes": {URI: [EDIT], f"file://{TOP}/.git/config.py": [EDIT]}},
    "edit of no source": {"changes": {URI: [EDIT], f"file://{TOP}/Makefile": [EDIT]}},
    "edit of no file": {"changes": {URI: [EDIT], "http://example.org/a.py": [EDIT]}},
    "edits that overlap": {"changes": {URI: [EDIT, {"range": AT, "newText": "again"}]}},
    "edits backwards": {"changes": {URI: [{"range": {"start": AT["end"], "end": AT["start"]}, "newText": "x"}]}},
    "edits of no form": {"changes": {URI: [{"range": [], "newText": 1}], "x": 1}},
    "a new file": {"documentChanges": [{"kind": "create", "uri": f"file://{TOP}/new.py"}]},
    "a file that moves": {"documentChanges": [{"kind": "rename", "oldUri": URI, "newUri": f"file://{TOP}/b.py"}]},
    "too many files": {"changes": {f"file://{TOP}/{number}.py": [EDIT] for number in range(501)}},
}
FRAMES = {
    "no header": b"\0garbage" * 2_000,
    "no length": b"X: y\r\n\r\n{}",
    "a length too large": b"Content-Length: 99999999999\r\n\r\n",
    "a length below zero": b"Content-Length: -1\r\n\r\n{}",
    "half a message": b"Content-Length: 100\r\n\r\n{",
}
BODIES = {
    "no json": b"{nonsense",
    "deep json": b"[" * 100_000 + b"]" * 100_000,
    "an answer to nothing": b'{"jsonrpc":"2.0","id":99999,"result":1}',
    "a number": b"7",
}


def send(body: bytes) -> None:
    OUT.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    OUT.flush()


def answer(request: dict[str, Any], result: Any) -> None:
    send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode())


def misbehave() -> None:
    """Before the answer to any request about the text."""
    if WRONG in FRAMES:
        OUT.write(FRAMES[WRONG])
        OUT.flush()
        time.sleep(0.2)
        sys.exit(0)
    if WRONG in BODIES:
        send(BODIES[WRONG])
    if WRONG == "exit in mid-call":
        os._exit(3)
    if WRONG == "never an answer":
        time.sleep(600)
    if WRONG == "a flood of errors":
        sys.stderr.write("x" * 400_000)
        sys.stderr.flush()
    if WRONG == "requests of its own":
        for number, method in enumerate(("workspace/applyEdit", "window/showDocument", "workspace/configuration", "x")):
            params = [] if number % 2 else {"edit": EDITS["edit outside"], "items": [{"section": "python.x.y"}, 7]}
            send(json.dumps({"jsonrpc": "2.0", "id": f"own{number}", "method": method, "params": params}).encode())


def result_of(method: str) -> Any:
    places = [{"uri": uri, "range": AT} for uri in PLACES.get(WRONG, [URI])]
    if WRONG == "huge":
        places = [{"uri": URI, "range": {"start": {"line": n, "character": n}, "end": AT["end"]}} for n in range(3_000)]
    if WRONG == "other types":
        return {"initialize": [1], "textDocument/hover": {"contents": 7}}.get(method, {"a": [None, {"range": "x"}]})
    if method == "initialize":
        return {"capabilities": {}}
    if method == "textDocument/rename":
        return EDITS.get(WRONG, {"changes": {URI: [EDIT]}})
    if method == "textDocument/hover":
        return {"contents": "words " * (200_000 if WRONG == "huge" else 1)}
    return [{"uri": URI, "range": AT}] if method == "textDocument/definition" and WRONG in EDITS else places


def main() -> None:
    if WRONG == "never a beginning":
        time.sleep(600)
    while header := sys.stdin.buffer.readline():
        sys.stdin.buffer.readline()
        request = json.loads(sys.stdin.buffer.read(int(header.split(b":")[1])))
        if "id" in request and "method" in request:
            if request["method"] != "initialize":
                misbehave()
            EDIT["newText"] = request["params"].get("newName", "")
            answer(request, result_of(request["method"]))
