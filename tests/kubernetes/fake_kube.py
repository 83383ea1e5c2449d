#!/usr/bin/env python3
"""A strict API server of Kubernetes that knows Leases alone, for tests, with the Python standard library only.

usage: fake_kube.py [--tls CERTIFICATE KEY] [--token TOKEN] [--namespaces NAME,...]

The first line of its output is its port. It then obeys commands from its input, one a line, and answers each with one
line:

    count VERB            the number of requests of this verb (get, list, watch, create, update, delete) so far; "all"
                          stands for all verbs
    complaints            what was wrong with the requests so far, or none
    token TEXT            the only valid token from now on
    rights VERB,...       the verbs that the token's user may use
    fault VERB KIND N     does KIND to the next N requests of this verb: a status such as 429, or lost (done, without an
                          answer), hang, html, short (half an answer). The verb page is a later page of a list
    retry SECONDS         the Retry-After of 429
    forget event|http     forgets its history: older versions are gone, said in an event or by HTTP 410
    outdate               forgets it, and leaves the watches alone
    bookmark              sends a bookmark to all watches
    close                 ends all watches without an error
    die                   closes its port and all connections
    live [empty]          opens the port again, with the Leases or without them
    freeze, thaw          answers nothing, until thaw
    clock SECONDS         moves the server's clock
    leases                the number of Leases
    watches               the number of watches that go on
    get NAME PATH         a value of a Lease: get viaduct.g.a spec.holderIdentity
    set NAME PATH TEXT    changes a value of a Lease, or makes the Lease
    cut NAME BYTES        cuts that many bytes off the value of a Lease
    remove NAME           deletes a Lease

It ends with its input.
"""
import argparse
import asyncio
import collections
import email.utils
import itertools
import json
import re
import ssl
import sys
import time
import urllib.parse
import uuid

PREFIX = "/apis/coordination.k8s.io/v1/namespaces/"
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?\Z")
LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\Z")
METADATA = {"name", "namespace", "uid", "resourceVersion", "labels", "annotations", "ownerReferences"}
SPEC = {"holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions"}
OWNER = {"apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"}
REASONS = {
    400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed",
    409: "Conflict", 410: "Expired", 415: "UnsupportedMediaType", 422: "Invalid", 429: "TooManyRequests",
    500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}


class Refusal(Exception):
    def __init__(self, code, message, wrong=False, **details):
        super().__init__(message)
        self.code, self.message, self.wrong, self.details = code, message, wrong, details

    def status(self):
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
                "reason": REASONS.get(self.code, "Unknown"), "details": self.details, "code": self.code}


def wrong(code, message):
    """A request that no correct client sends."""
    return Refusal(code, message, wrong=True)


def need(condition, code, message):
    if not condition:
        raise wrong(code, message)


def is_text_map(value):
    return isinstance(value, dict) and all(isinstance(v, str) for v in value.values())


def check_metadata(metadata, name, namespace):
    need(isinstance(metadata, dict), 400, "metadata is no object")
    need(not set(metadata) - METADATA, 400, f"unknown fields {set(metadata) - METADATA}")
    need(isinstance(metadata.get("name"), str) and OBJECT_NAME.match(metadata["name"]) and len(metadata["name"]) <= 253,
         422, f"metadata.name: {metadata.get('name')}")
    need(name in (None, metadata["name"]), 400, "the name of the object does not match the name on the URL")
    need(metadata.get("namespace", namespace) == namespace, 400, "the namespace does not match the one on the URL")
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    need(is_text_map(labels) and is_text_map(annotations), 400, "labels and annotations are texts")
    for key, value in labels.items():
        need(LABEL_KEY.match(key) and LABEL.match(value), 422, f"metadata.labels: {key}={value}")
    need(all(LABEL_KEY.match(key) for key in annotations), 422, "metadata.annotations")
    size = sum(len(k.encode()) + len(v.encode()) for k, v in annotations.items())
    need(size <= 256 << 10, 422, f"metadata.annotations: Too long: {size} bytes")
    for owner in metadata.get("ownerReferences", []):
        need(not set(owner) - OWNER and all(owner.get(k) for k in ("apiVersion", "kind", "name", "uid")), 422,
             "metadata.ownerReferences")


def check_spec(spec):
    need(isinstance(spec, dict) and not set(spec) - SPEC, 400, f"unknown fields in {spec}")
    for key in ("acquireTime", "renewTime"):
        need(key not in spec or (isinstance(spec[key], str) and MICRO_TIME.match(spec[key])), 400, f"spec.{key}")
    seconds, transitions = spec.get("leaseDurationSeconds", 1), spec.get("leaseTransitions", 0)
    need(type(seconds) is int and seconds > 0, 422, "spec.leaseDurationSeconds: must be greater than 0")
    need(type(transitions) is int and transitions >= 0, 422, "spec.leaseTransitions: must be at least 0")
    need(isinstance(spec.get("holderIdentity", "x"), str), 400, "spec.holderIdentity")


class Selector:
    """The selectors of a query."""

    def __init__(self, query):
        self.labels, self.name = [], None
        for part in re.findall(r"[^,(]+(?:\([^)]*\))?", query.get("labelSelector", "")):
            equal = re.match(r"([^= ]+)=([^=]*)\Z", part)
            among = re.match(r"([^= ]+) in \(([^)]+)\)\Z", part)
            need(equal or among, 400, f"labelSelector {part}")
            found = equal or among
            need(LABEL_KEY.match(found[1]), 400, f"labelSelector {part}")
            values = set(found[2].split(",")) if among else {found[2]}
            need(all(LABEL.match(value) for value in values), 400, f"labelSelector {part}")
            self.labels.append((found[1], values))
        if "fieldSelector" in query:
            name = re.match(r"metadata\.name=([^,=]+)\Z", query["fieldSelector"])
            need(name, 400, f"fieldSelector {query['fieldSelector']}")
            self.name = name[1]

    def takes(self, lease):
        metadata = lease["metadata"]
        if self.name not in (None, metadata["name"]):
            return False
        return all(metadata.get("labels", {}).get(key) in values for key, values in self.labels)


class Server:
    """Everything that all connections share."""

    def __init__(self, options):
        self.options = options
        self.token = options.token
        self.namespaces = set(options.namespaces.split(","))
        self.rights = {"get", "list", "watch", "create", "update", "delete"}
        self.leases, self.version = {}, 1000
        self.history, self.oldest = [], 1000  # (version, type, lease)
        self.pages, self.page_numbers = {}, itertools.count(1)
        self.counts, self.faults, self.complaints = collections.Counter(), [], []
        self.connections, self.watches, self.held = set(), set(), []
        self.retry_after, self.gone_by_http, self.frozen, self.offset = 1, False, False, 0.0
        self.listening, self.port = None, 0

    def date(self):
        return email.utils.formatdate(time.time() + self.offset, usegmt=True)

    # Requests

    def answer(self, connection, method, target, headers, body):
        path, _, query = target.partition("?")
        query = dict(urllib.parse.parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))
        verb, namespace, name = self.verb_of(method, path, query)
        self.counts[verb] += 1
        fault = self.fault_for("page" if "continue" in query else verb)
        if fault == "hang":
            return
        if fault == "html":
            return connection.send(200, b"<html>not here</html>", "text/html")
        if fault and fault.isdigit():
            raise Refusal(int(fault), "injected", retryAfterSeconds=self.retry_after)
        self.check_access(verb, namespace, headers)
        if method in ("POST", "PUT") or body:
            need(method != "GET", 400, "a GET with a body")
            need(headers.get("content-type", "").split(";")[0] == "application/json", 415, "the content type")
        if verb == "watch":
            return self.watch(connection, namespace, query)
        result = {"get": self.get, "list": self.list, "create": self.create, "update": self.update,
                  "delete": self.delete}[verb](namespace, name, query, body)
        if fault == "lost":
            return connection.cut()
        text = json.dumps(result).encode()
        if fault == "short":
            text = text[: len(text) // 2]
        connection.send(201 if verb == "create" else 200, text)

    def verb_of(self, method, path, query):
        need(path.startswith(PREFIX), 404, f"the server could not find the requested resource {path}")
        namespace, kind, *rest = [urllib.parse.unquote(part) for part in path[len(PREFIX):].split("/")] + [""]
        need(kind == "leases" and len(rest) <= 2, 404, f"the server could not find {path}")
        name = rest[0] if len(rest) == 2 else None
        verbs = {("GET", True): "get", ("GET", False): "watch" if "watch" in query else "list",
                 ("POST", False): "create", ("PUT", True): "update", ("DELETE", True): "delete"}
        need((method, name is not None) in verbs, 405, f"{method} {path}")
        verb = verbs[method, name is not None]
        allowed = {"list": {"labelSelector", "fieldSelector", "limit", "continue"},
                   "watch": {"labelSelector", "fieldSelector", "watch", "resourceVersion", "allowWatchBookmarks",
                             "timeoutSeconds"}}.get(verb, set())
        need(not set(query) - allowed, 400, f"{verb}: unknown parameters {set(query) - allowed}")
        return verb, namespace, name

    def fault_for(self, verb):
        for fault in self.faults:
            if fault[0] == verb and fault[2] > 0:
                fault[2] -= 1
                return fault[1]
        return None

    def check_access(self, verb, namespace, headers):
        if self.token is not None and headers.get("authorization") != f"Bearer {self.token}":
            raise Refusal(401, "Unauthorized")
        if verb not in self.rights:
            raise Refusal(403, f'leases.coordination.k8s.io is forbidden: User "system:serviceaccount:{namespace}:default"'
                          f' cannot {verb} resource "leases" in API group "coordination.k8s.io" in the namespace'
                          f' "{namespace}"', kind="leases")

    def get(self, namespace, name, _query, _body):
        lease = self.leases.get((namespace, name))
        if lease is None:
            raise Refusal(404, f'leases.coordination.k8s.io "{name}" not found', kind="leases", name=name)
        return lease

    def list(self, namespace, _name, query, _body):
        selector = Selector(query)
        limit = int(query.get("limit", 0)) or sys.maxsize
        if "continue" in query:
            if query["continue"] not in self.pages:
                raise Refusal(410, "The provided continue parameter is too old")
            version, found = self.pages.pop(query["continue"])
        else:
            version = self.version
            found = [lease for (where, _), lease in sorted(self.leases.items())
                     if where == namespace and selector.takes(lease)]
        metadata = {"resourceVersion": str(version)}
        if len(found) > limit:
            metadata["continue"] = f"page+{next(self.page_numbers)}/="
            self.pages[metadata["continue"]] = version, found[limit:]
        return {"kind": "LeaseList", "apiVersion": "coordination.k8s.io/v1", "metadata": metadata,
                "items": found[:limit]}

    def parse(self, body, namespace, name):
        try:
            lease = json.loads(body)
        except ValueError as error:
            raise wrong(400, f"no JSON: {error}") from error
        need(isinstance(lease, dict) and not set(lease) - {"apiVersion", "kind", "metadata", "spec"}, 400,
             "unknown fields")
        need(lease.get("apiVersion") == "coordination.k8s.io/v1" and lease.get("kind") == "Lease", 400, "the kind")
        check_metadata(lease.get("metadata"), name, namespace)
        check_spec(lease.get("spec", {}))
        return lease

    def create(self, namespace, _name, _query, body):
        lease = self.parse(body, namespace, None)
        metadata = lease["metadata"]
        need(not metadata.get("resourceVersion"), 400, "resourceVersion should not be set on objects to be created")
        need("uid" not in metadata, 400, "uid should not be set on objects to be created")
        if namespace not in self.namespaces:
            raise Refusal(404, f'namespaces "{namespace}" not found', kind="namespaces", name=namespace)
        if (namespace, metadata["name"]) in self.leases:
            raise Refusal(409, f'leases.coordination.k8s.io "{metadata["name"]}" already exists', kind="leases")
        metadata["uid"] = str(uuid.uuid4())
        return self.store("ADDED", namespace, lease)

    def update(self, namespace, name, _query, body):
        lease = self.parse(body, namespace, name)
        metadata = lease["metadata"]
        need(metadata.get("resourceVersion"), 422, "metadata.resourceVersion: must be specified for an update")
        there = self.get(namespace, name, None, None)
        if metadata["resourceVersion"] != there["metadata"]["resourceVersion"]:
            raise Refusal(409, "the object has been modified", kind="leases")
        if metadata.get("uid", there["metadata"]["uid"]) != there["metadata"]["uid"]:
            raise Refusal(409, "Precondition failed: UID in precondition", kind="leases")
        metadata["uid"] = there["metadata"]["uid"]
        return self.store("MODIFIED", namespace, lease)

    def delete(self, namespace, name, _query, body):
        there = self.get(namespace, name, None, None)
        if body:
            options = json.loads(body)
            need(not set(options) - {"apiVersion", "kind", "preconditions"}, 400, "unknown fields of DeleteOptions")
            for key, value in options.get("preconditions", {}).items():
                need(key in ("uid", "resourceVersion"), 400, f"unknown precondition {key}")
                if there["metadata"][key] != value:
                    raise Refusal(409, f"Precondition failed: {key}", kind="leases")
        del self.leases[namespace, name]
        self.happened("DELETED", namespace, there)
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}

    # Changes

    def store(self, kind, namespace, lease):
        lease["metadata"]["namespace"] = namespace
        self.leases[namespace, lease["metadata"]["name"]] = lease
        return self.happened(kind, namespace, lease)

    def happened(self, kind, namespace, lease):
        self.version += 1
        lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": str(self.version)}}
        if kind != "DELETED":
            self.leases[namespace, lease["metadata"]["name"]] = lease
        self.history.append((self.version, kind, namespace, lease))
        for watch in list(self.watches):
            watch.tell(self.history[-1])
        return lease

    def watch(self, connection, namespace, query):
        need(query["watch"] in ("1", "true"), 400, "watch")
        need(query.get("resourceVersion", "").isdigit(), 400, "watch: resourceVersion is missing")
        need(query.get("timeoutSeconds", "").isdigit(), 400, "watch: timeoutSeconds is missing")
        need(query.get("allowWatchBookmarks") == "true", 400, "watch: bookmarks are not wanted")
        version = int(query["resourceVersion"])
        if version > self.version:
            raise Refusal(504, f"Too large resource version: {version}, current: {self.version}", retryAfterSeconds=1)
        if version < self.oldest and self.gone_by_http:
            raise Refusal(410, f"too old resource version: {version} ({self.oldest})")
        watch = Watch(self, connection, namespace, Selector(query), int(query["timeoutSeconds"]))
        if version < self.oldest:
            return watch.end_with(Refusal(410, f"too old resource version: {version} ({self.oldest})"))
        for change in self.history:
            if change[0] > version:
                watch.tell(change)
        return None

    # Commands

    def obey(self, line):
        word, *rest = line.split(" ")
        return getattr(self, "do_" + word)(*rest)

    def do_count(self, verb):
        return sum(self.counts.values()) if verb == "all" else self.counts[verb]

    def do_complaints(self):
        return "; ".join(self.complaints) or "none"

    def do_token(self, token):
        self.token = token

    def do_rights(self, verbs=""):
        self.rights = set(verbs.split(","))

    def do_fault(self, verb, kind, times):
        self.faults.append([verb, kind, int(times)])

    def do_retry(self, seconds):
        self.retry_after = int(seconds)

    def do_forget(self, way):
        self.version += 1
        self.history, self.oldest, self.pages = [], self.version, {}
        self.gone_by_http = way == "http"
        for watch in list(self.watches):
            watch.end() if self.gone_by_http else watch.end_with(Refusal(410, "too old resource version"))

    def do_outdate(self):
        self.history, self.oldest = [], self.version

    def do_bookmark(self):
        self.version += 1
        for watch in list(self.watches):
            watch.bookmark()

    def do_close(self):
        for watch in list(self.watches):
            watch.end()

    def do_die(self):
        self.listening.close()
        for connection in list(self.connections):
            connection.cut()

    async def do_live(self, empty=None):
        if empty:
            self.leases, self.history, self.version, self.oldest = {}, [], 10, 10
        await self.listen()

    def do_freeze(self):
        self.frozen = True

    def do_thaw(self):
        self.frozen = False
        held, self.held = self.held, []
        for request in held:
            self.serve(*request)

    def do_clock(self, seconds):
        self.offset = float(seconds)

    def do_leases(self):
        return len(self.leases)

    def do_watches(self):
        return len(self.watches)

    def found(self, name):
        return next((key for key in self.leases if key[1] == name), None)

    def do_get(self, name, path):
        value = self.leases.get(self.found(name))
        for part in path.split("."):
            value = value.get(part) if value else None
        return "none" if value is None else value if isinstance(value, str) else json.dumps(value)

    def do_set(self, name, path, *words):
        namespace, _ = self.found(name) or ("default", name)
        lease = json.loads(json.dumps(self.leases.get((namespace, name), {
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": name, "uid": str(uuid.uuid4())}, "spec": {}})))
        kind = "MODIFIED" if (namespace, name) in self.leases else "ADDED"
        *way, last = path.split(".")
        place = lease
        for part in way:
            place = place.setdefault(part, {})
        text = " ".join(words)
        place[last] = int(text) if text.isdigit() else text
        self.store(kind, namespace, lease)

    def do_cut(self, name, count):
        value = self.do_get(name, "metadata.annotations.viaduct/value")
        namespace, _ = self.found(name)
        lease = json.loads(json.dumps(self.leases[namespace, name]))
        lease["metadata"]["annotations"]["viaduct/value"] = value[: -int(count)]
        self.store("MODIFIED", namespace, lease)

    def do_remove(self, name):
        namespace, _ = self.found(name)
        self.delete(namespace, name, None, None)

    # The machinery

    def serve(self, connection, method, target, headers, body):
        if self.frozen:
            self.held.append((connection, method, target, headers, body))
            return
        try:
            need("host" in headers, 400, "no Host")
            self.answer(connection, method, target, headers, body)
        except Refusal as refusal:
            if refusal.wrong:
                self.complaints.append(f"{method} {target}: {refusal.message}".replace("\n", " "))
            more = f"Retry-After: {self.retry_after}\r\n" if refusal.code == 429 else ""
            connection.send(refusal.code, json.dumps(refusal.status()).encode() + b"\n", more=more)

    async def listen(self):
        context = None
        if self.options.tls:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(*self.options.tls)
        loop = asyncio.get_running_loop()
        self.listening = await loop.create_server(
            lambda: Connection(self), "127.0.0.1", self.port, ssl=context, backlog=4096, reuse_address=True)
        self.port = self.listening.sockets[0].getsockname()[1]

    async def run(self):
        await self.listen()
        print(self.port, flush=True)
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            result = self.obey(line.decode().rstrip("\n"))
            if asyncio.iscoroutine(result):
                result = await result
            print("ok" if result is None else result, flush=True)


class Watch:
    def __init__(self, server, connection, namespace, selector, seconds):
        self.server, self.connection = server, connection
        self.namespace, self.selector = namespace, selector
        server.watches.add(self)
        connection.watch = self
        connection.begin_stream()
        self.timer = asyncio.get_running_loop().call_later(seconds, self.end)

    def line(self, kind, thing):
        self.connection.chunk(json.dumps({"type": kind, "object": thing}).encode() + b"\n")

    def tell(self, change):
        _, kind, namespace, lease = change
        if not self.server.frozen and namespace == self.namespace and self.selector.takes(lease):
            self.line(kind, lease)

    def bookmark(self):
        self.line("BOOKMARK", {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
                               "metadata": {"resourceVersion": str(self.server.version), "creationTimestamp": None}})

    def end_with(self, refusal):
        self.line("ERROR", refusal.status())
        self.end()

    def end(self):
        self.forget()
        self.connection.chunk(b"")

    def forget(self):
        self.timer.cancel()
        self.server.watches.discard(self)
        self.connection.watch = None


class Connection(asyncio.Protocol):
    def __init__(self, server):
        self.server, self.received, self.watch, self.transport = server, b"", None, None

    def connection_made(self, transport):
        self.transport = transport
        self.server.connections.add(self)

    def connection_lost(self, _why):
        self.server.connections.discard(self)
        if self.watch:
            self.watch.forget()

    def data_received(self, data):
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            first, *lines = self.received[:end].decode("latin-1").split("\r\n")
            headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
            size = int(headers.get("content-length", 0))
            if len(self.received) < end + 4 + size:
                return
            body = self.received[end + 4:end + 4 + size]
            self.received = self.received[end + 4 + size:]
            method, target, _ = first.split(" ")
            self.server.serve(self, method, target, headers, body)

    def head(self, code, kind, more):
        return (f"HTTP/1.1 {code} {REASONS.get(code, 'OK')}\r\nDate: {self.server.date()}\r\n"
                f"Content-Type: {kind}\r\n{more}").encode()

    def send(self, code, body, kind="application/json", more=""):
        self.transport.write(self.head(code, kind, more + f"Content-Length: {len(body)}\r\n\r\n") + body)

    def begin_stream(self):
        self.transport.write(self.head(200, "application/json", "Transfer-Encoding: chunked\r\n\r\n"))

    def chunk(self, data):
        self.transport.write(b"%x\r\n%s\r\n" % (len(data), data))

    def cut(self):
        self.transport.abort()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tls", nargs=2)
    parser.add_argument("--token")
    parser.add_argument("--namespaces", default="default")
    asyncio.run(Server(parser.parse_args()).run())


if __name__ == "__main__":
    main()
