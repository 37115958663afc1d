"""An embeddings endpoint on 127.0.0.1, in a thread, that answers as a test tells it to."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

MEANINGS: Final = [
    {"doctor", "physician", "surgery"},
    {"peanuts", "allergic", "sick"},
    {"bicycle", "cycling", "ride"},
]
DIMENSIONS: Final = len(MEANINGS) + 1


def meaning(text: str) -> list[float]:
    """Return a vector that says which of `MEANINGS` a text has a word of; a text without any points elsewhere."""
    words = set(re.findall(r"\w+", text.casefold()))
    found = [float(bool(words & synonyms)) for synonyms in MEANINGS]
    return [*found, 0.0 if any(found) else 1.0]


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        """The texts to embed."""
        texts: list[str] = self.body["input"]
        return texts


@dataclass(frozen=True)
class Answer:
    """What the endpoint sends back; ``body`` may be anything that JSON can say, or text."""

    status: int = 200
    body: object = None
    headers: dict[str, str] = field(default_factory=dict)


def embeddings(texts: Sequence[str]) -> dict[str, Any]:
    """Return the body of a good answer."""
    return {"data": [{"index": index, "embedding": meaning(text)} for index, text in enumerate(texts)]}


class Endpoint:
    """A running endpoint.

    Attributes:
        requests: what it was sent.
        answers: what it does with the next requests, in order; then it answers well.
        may_go_on: until it is set, an answer that waits for it is not sent.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answers: list[Answer | Callable[[Request], Answer]] = []
        self.may_go_on = threading.Event()
        self.connections = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    @contextmanager
    def running(self) -> Iterator[Endpoint]:
        """Serve in a thread."""
        thread = threading.Thread(target=self._server.serve_forever, args=[0.01])
        thread.start()
        try:
            yield self
        finally:
            self.may_go_on.set()
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def hang(self, request: Request) -> Answer:
        """Wait until the test is over."""
        self.may_go_on.wait()
        return Answer(body=embeddings(request.texts))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                endpoint.connections += 1
                super().setup()

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                request = Request(self.path, dict(self.headers), body)
                endpoint.requests.append(request)
                answer = endpoint.answers.pop(0) if endpoint.answers else Answer(body=embeddings(request.texts))
                if not isinstance(answer, Answer):
                    answer = answer(request)
                self._send(answer)

            def _send(self, answer: Answer) -> None:
                text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
                sent = text.encode()
                try:
                    self.send_response(answer.status)
                    for name, value in {"Content-Length": str(len(sent)), **answer.headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(sent)
                except OSError:
                    pass  # the client has gone

            def log_message(self, *_arguments: object) -> None:
                pass

        return Handler
