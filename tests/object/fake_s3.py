#!/usr/bin/env python3
"""A strict S3 server in memory, for tests, with the Python standard library only.

usage: fake_s3.py [--port PORT] [--tls CERTIFICATE KEY] [--keys ACCESS SECRET [TOKEN]]

It verifies every signature (AWS Signature Version 4, in headers), and refuses unsigned bodies over http. The first line
of its output is its port. It then obeys commands from its input, one a line, and answers each with one line:

    put BUCKET KEY BYTES          stores an object whose bytes are a function of their place
    zeros BUCKET KEY BYTES        stores an object of zeros
    bucket BUCKET                 makes a bucket
    same BUCKET KEY BYTES         yes, if the object is what `put` stores
    fault METHOD KIND TIMES TEXT  does KIND to the next TIMES requests of this method whose target contains TEXT
    hung COUNT                    answers when so many requests have begun to hang so far
    release                       lets them go on
    uploads                       the number of unfinished uploads
    objects BUCKET                the number of its objects
    count METHOD                  the number of requests of this method so far
    clock SECONDS                 moves the server's clock

It ends with its input.
"""
import argparse
import array
import collections
import functools
import hashlib
import hmac
import http.server
import itertools
import re
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

MOST_SKEW = 15 * 60
LEAST_PART = 5 << 20
XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


@functools.lru_cache(maxsize=8)
def pattern(size):
    """Bytes of which each run of eight tells its place."""
    words = array.array("Q", [i * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF for i in range((size + 7) // 8)])
    return words.tobytes()[:size]


class Refusal(Exception):
    def __init__(self, status, code, message="refused", more=""):
        super().__init__(code)
        self.status, self.code, self.message, self.more = status, code, message, more


class Store:
    """Everything that all connections share."""

    def __init__(self, keys):
        self.access, self.secret, self.token = keys
        self.lock = threading.Condition()
        self.buckets = {}  # name -> key -> (bytes, etag)
        self.uploads = {}  # id -> (bucket, key, parts)
        self.faults = []  # [method, kind, times, text]
        self.counts = collections.Counter()
        self.numbers = itertools.count(1)
        self.hung, self.released, self.offset = 0, 0, 0

    def now(self):
        return time.time() + self.offset

    def fault_for(self, method, target):
        with self.lock:
            self.counts[method] += 1
            for fault in self.faults:
                if fault[0] == method and fault[2] > 0 and fault[3] in target:
                    fault[2] -= 1
                    return fault[1]
        return None

    def hang(self):
        with self.lock:
            self.hung += 1
            self.lock.notify_all()
            generation = self.released
            self.lock.wait_for(lambda: self.released != generation)

    def bucket(self, name):
        if name not in self.buckets:
            raise Refusal(404, "NoSuchBucket", "The specified bucket does not exist")
        return self.buckets[name]

    def save(self, bucket, key, data, etag=None):
        etag = etag or '"%s"' % hashlib.md5(data).hexdigest()
        with self.lock:
            self.bucket(bucket)[key] = (data, etag)
        return etag

    def command(self, words):
        name, rest = words[0], words[1:]
        if name == "bucket":
            self.buckets.setdefault(rest[0], {})
        elif name in ("put", "zeros"):
            self.buckets.setdefault(rest[0], {})
            self.save(rest[0], rest[1], (pattern if name == "put" else bytes)(int(rest[2])))
        elif name == "same":
            held = self.buckets.get(rest[0], {}).get(rest[1])
            return "absent" if held is None else "yes" if held[0] == pattern(int(rest[2])) else "no"
        elif name == "fault":
            self.faults.append([rest[0], rest[1], int(rest[2]), rest[3] if len(rest) > 3 else ""])
        elif name == "hung":
            with self.lock:
                self.lock.wait_for(lambda: self.hung >= int(rest[0]))
        elif name == "release":
            with self.lock:
                self.released += 1
                self.lock.notify_all()
        elif name == "uploads":
            return str(len(self.uploads))
        elif name == "objects":
            return str(len(self.buckets[rest[0]]))
        elif name == "count":
            return str(self.counts[rest[0]])
        elif name == "clock":
            self.offset = int(rest[0])
        else:
            return "unknown"
        return "ok"


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 0
    store = None
    tls = False

    def log_message(self, *words):
        pass

    def date_time_string(self, timestamp=None):
        return super().date_time_string(self.store.now() if timestamp is None else timestamp)

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    # ---- Signatures ----

    def check_signature(self, payload):
        match = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?"
            r"Signature=([0-9a-f]{64})", self.headers.get("Authorization", ""))
        if match is None:
            raise Refusal(403, "AccessDenied", "the request is not signed")
        access, day, region, names, signature = match.groups()
        if access != self.store.access:
            raise Refusal(403, "InvalidAccessKeyId", "The key you provided does not exist in our records")
        stamp = self.headers.get("x-amz-date", "")
        self.check_time(stamp)
        if not stamp.startswith(day):
            raise Refusal(403, "SignatureDoesNotMatch", "two days")
        if self.store.token is not None and self.headers.get("x-amz-security-token") != self.store.token:
            raise Refusal(400, "InvalidToken", "the token is wrong")
        listed = names.split(";")
        needed = {"host"} | {name.lower() for name in self.headers if name.lower().startswith("x-amz-")}
        if listed != sorted(listed) or not needed <= set(listed):
            raise Refusal(403, "SignatureDoesNotMatch", "a header is not signed")
        digest = self.check_payload(payload)
        headers = "".join(f"{name}:{' '.join(self.headers.get(name, '').split())}\n" for name in listed)
        canonical = "\n".join([self.command, self.raw_path, self.canonical_query(), headers, names, digest])
        scope = f"{day}/{region}/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = sign(sign(sign(sign(b"AWS4" + self.store.secret.encode(), day), region), "s3"), "aws4_request")
        if not hmac.compare_digest(sign(key, text).hex(), signature):
            raise Refusal(403, "SignatureDoesNotMatch", "The request signature we calculated does not match")

    def check_time(self, stamp):
        try:
            sent = time.strptime(stamp, "%Y%m%dT%H%M%SZ")
        except ValueError as wrong:
            raise Refusal(403, "AccessDenied", "no x-amz-date") from wrong
        now = self.store.now()
        if abs(now - (time.mktime(sent) - time.timezone)) > MOST_SKEW:
            there = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
            raise Refusal(403, "RequestTimeTooSkewed", "The difference is too large",
                          f"<ServerTime>{there}</ServerTime>")

    def check_payload(self, payload):
        digest = self.headers.get("x-amz-content-sha256", "")
        if digest == "UNSIGNED-PAYLOAD":
            if not self.tls and payload:
                raise Refusal(400, "InvalidRequest", "an unsigned body over http")
        elif digest != hashlib.sha256(payload).hexdigest():
            raise Refusal(400, "XAmzContentSHA256Mismatch", "The hash does not match the body")
        return digest

    def canonical_query(self):
        pairs = []
        for pair in filter(None, self.raw_query.split("&")):
            name, _, value = pair.partition("=")
            pairs.append(tuple(urllib.parse.quote(urllib.parse.unquote(part), safe="-._~") for part in (name, value)))
        return "&".join(f"{name}={value}" for name, value in sorted(pairs))

    # ---- Requests ----

    def serve(self):
        length = int(self.headers.get("Content-Length") or 0)
        fault = self.store.fault_for(self.command, self.path)
        if fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return
        payload = self.rfile.read(length)
        if len(payload) != length:
            self.close_connection = True
            return
        if fault == "hang":
            self.store.hang()
        self.fault = fault
        self.raw_path, _, self.raw_query = self.path.partition("?")
        try:
            if fault == "page":
                return self.answer(200, b"<html>a console</html>")
            if fault == "403":
                raise Refusal(403, "AccessDenied", "a policy forbids it")
            if fault in ("500", "503"):
                raise Refusal(int(fault), "SlowDown" if fault == "503" else "InternalError", "try again")
            self.check_signature(payload)
            path = urllib.parse.unquote(self.raw_path)
            if urllib.parse.quote(path, safe="/-._~") != self.raw_path:
                raise Refusal(403, "SignatureDoesNotMatch", "the path is not encoded as it should be")
            host = self.headers.get("Host", "").rsplit(":", 1)[0]
            if host.endswith(".localhost"):
                bucket, key = host[:-len(".localhost")], path[1:]
            else:
                bucket, _, key = path[1:].partition("/")
            query = dict(urllib.parse.parse_qsl(self.raw_query, keep_blank_values=True))
            self.dispatch(bucket, key, query, payload)
        except Refusal as refusal:
            body = (f"{XML}<Error><Code>{refusal.code}</Code><Message>{escape(refusal.message)}</Message>"
                    f"{refusal.more}<RequestId>1</RequestId></Error>").encode()
            self.answer(refusal.status, body)
        except (ConnectionError, ssl.SSLError):
            self.close_connection = True

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve

    def answer(self, status, body=b"", headers=(), length=None):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD" and len(body) != 0:
            self.connection.sendall(body)

    def xml(self, name, inside):
        namespace = "http://s3.amazonaws.com/doc/2006-03-01/"
        self.answer(200, f'{XML}<{name} xmlns="{namespace}">{inside}</{name}>'.encode(),
                    [("Content-Type", "application/xml")])

    def dispatch(self, bucket, key, query, payload):
        if not bucket:
            names = "".join(f"<Bucket><Name>{escape(name)}</Name><CreationDate>2026-01-01T00:00:00.000Z</CreationDate>"
                            "</Bucket>" for name in self.store.buckets)
            return self.xml("ListAllMyBucketsResult", f"<Owner><ID>1</ID></Owner><Buckets>{names}</Buckets>")
        if not key:
            return self.on_bucket(bucket, query)
        if self.command == "POST" or "uploadId" in query:
            return self.on_upload(bucket, key, query, payload)
        if self.command == "PUT":
            return self.answer(200, headers=[("ETag", self.store.save(bucket, key, payload))])
        if self.command == "DELETE":
            self.store.bucket(bucket).pop(key, None)
            return self.answer(204)
        return self.get(bucket, key)

    def on_bucket(self, bucket, query):
        if self.command == "PUT":
            self.store.buckets.setdefault(bucket, {})
            return self.answer(200)
        held = self.store.bucket(bucket)
        if self.command == "DELETE":
            del self.store.buckets[bucket]
            return self.answer(204)
        if "location" in query:
            return self.xml("LocationConstraint", "")
        if "uploads" in query:
            uploads = "".join(f"<Upload><Key>{escape(key)}</Key><UploadId>{name}</UploadId>"
                              "<Initiated>2026-01-01T00:00:00.000Z</Initiated></Upload>"
                              for name, (owner, key, _) in self.store.uploads.items() if owner == bucket)
            return self.xml("ListMultipartUploadsResult", f"<Bucket>{escape(bucket)}</Bucket>"
                            f"<IsTruncated>false</IsTruncated>{uploads}")
        if self.command == "HEAD":
            return self.answer(200)
        prefix = query.get("prefix", "")
        keys = sorted(key for key in held if key.startswith(prefix))
        contents = "".join(f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
                           f"<ETag>{escape(held[key][1])}</ETag><Size>{len(held[key][0])}</Size>"
                           "<StorageClass>STANDARD</StorageClass></Contents>" for key in keys)
        return self.xml("ListBucketResult", f"<Name>{escape(bucket)}</Name><Prefix>{escape(prefix)}</Prefix>"
                        f"<KeyCount>{len(keys)}</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>"
                        f"{contents}")

    def on_upload(self, bucket, key, query, payload):
        store = self.store
        store.bucket(bucket)
        if "uploads" in query:
            name = "id+%d/=" % next(store.numbers)
            store.uploads[name] = (bucket, key, {})
            return self.xml("InitiateMultipartUploadResult", f"<Bucket>{escape(bucket)}</Bucket>"
                            f"<Key>{escape(key)}</Key><UploadId>{escape(name)}</UploadId>")
        upload = store.uploads.get(query.get("uploadId"))
        if upload is None or upload[:2] != (bucket, key):
            raise Refusal(404, "NoSuchUpload", "The specified upload does not exist")
        if self.command == "DELETE":
            store.uploads.pop(query["uploadId"])
            return self.answer(204)
        if self.command == "PUT":
            number = int(query["partNumber"])
            if not 1 <= number <= 10000:
                raise Refusal(400, "InvalidArgument", "the part's number")
            etag = '"%s"' % hashlib.md5(payload).hexdigest()
            upload[2][number] = (payload, etag)
            return self.answer(200, headers=[("ETag", etag)])
        if self.command != "POST":
            return self.xml("ListPartsResult", "".join(
                f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(etag)}</ETag><Size>{len(data)}</Size></Part>"
                for number, (data, etag) in sorted(upload[2].items())))
        return self.complete(bucket, key, query["uploadId"], upload[2], payload.decode())

    def complete(self, bucket, key, name, parts, order):
        if self.fault == "error200":
            return self.answer(200, f"{XML}<Error><Code>InternalError</Code><Message>late</Message></Error>".encode())
        named = []
        for part in re.findall(r"<Part>(.*?)</Part>", order, re.S):
            number = int(re.search(r"<PartNumber>(\d+)</PartNumber>", part).group(1))
            etag = re.search(r"<ETag>(.*?)</ETag>", part, re.S).group(1).replace("&quot;", '"')
            named.append((number, '"%s"' % etag.strip('"')))
        if [number for number, _ in named] != sorted({number for number, _ in named}):
            raise Refusal(400, "InvalidPartOrder", "the parts are not in order")
        for index, (number, etag) in enumerate(named):
            if number not in parts or parts[number][1] != etag:
                raise Refusal(400, "InvalidPart", "a part is unknown")
            if index + 1 != len(named) and len(parts[number][0]) < LEAST_PART:
                raise Refusal(400, "EntityTooSmall", "a part is too small")
        data = b"".join(parts[number][0] for number, _ in named)
        whole = hashlib.md5(b"".join(bytes.fromhex(etag.strip('"')) for _, etag in named)).hexdigest()
        etag = self.store.save(bucket, key, data, '"%s-%d"' % (whole, len(named)))
        self.store.uploads.pop(name, None)
        return self.xml("CompleteMultipartUploadResult", f"<Bucket>{escape(bucket)}</Bucket><Key>{escape(key)}</Key>"
                        f"<ETag>{escape(etag)}</ETag>")

    def get(self, bucket, key):
        held = self.store.bucket(bucket).get(key)
        if held is None:
            raise Refusal(404, "NoSuchKey", "The specified key does not exist.")
        data, etag = held
        if self.fault == "replace":
            etag = '"other"'
        if self.headers.get("If-Match", etag) != etag:
            raise Refusal(412, "PreconditionFailed", "the ETag is another")
        headers = [("ETag", etag), ("Accept-Ranges", "bytes"), ("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")]
        match = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if match is None or self.fault == "whole":
            return self.answer(200, memoryview(data), headers)
        first, last = int(match.group(1)), min(int(match.group(2) or len(data)), len(data) - 1)
        if first >= len(data):
            raise Refusal(416, "InvalidRange", "The requested range is not satisfiable")
        body, shift = memoryview(data)[first:last + 1], 1 if self.fault == "wrongrange" else 0
        if self.fault != "norange":
            headers.append(("Content-Range", f"bytes {first + shift}-{last + shift}/{len(data)}"))
        if self.fault == "cut":
            self.answer(206, body[:len(body) // 2], headers, len(body))
            self.close_connection = True
        elif self.fault == "few":
            self.answer(206, body[:-1], headers)
        elif self.fault == "stall":
            self.answer(206, body[:len(body) // 2], headers, len(body))
            self.store.hang()
            self.connection.sendall(body[len(body) // 2:])
        else:
            self.answer(206, body, headers)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        pass  # a client has gone


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tls", nargs=2)
    parser.add_argument("--keys", nargs="+", default=["FAKEKEY", "fakesecret"])
    options = parser.parse_args()
    Handler.store = Store((options.keys + [None])[:3])
    server = Server(("127.0.0.1", options.port), Handler)
    if options.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*options.tls)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        Handler.tls = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    for line in sys.stdin:
        print(Handler.store.command(line.split()), flush=True)


if __name__ == "__main__":
    main()
