#include "measure/p2p/request.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace viaduct::measure::p2p {
namespace {

// "VP2P", and the version of what follows.
constexpr std::uint32_t kMagic = 0x50325056;
constexpr std::uint8_t kVersion = 3;

constexpr std::uint32_t kMostStreams = 1024;  // and transfers in flight of each

Error garbled() {
  return {.code = Code::kProtocol,
          .operation = "p2p",
          .detail = "the other end sent a malformed note",
          .cause = "the other end is not `viaduct p2p`, or has another version",
          .remedy = "run the same version of viaduct on both hosts"};
}

base::Writer begin() {
  base::Writer out;
  out.put(kMagic).put(kVersion);
  return out;
}

bool begins(base::Reader& in) {
  const auto magic = in.get<std::uint32_t>();
  return in.get<std::uint8_t>() == kVersion && magic == kMagic;
}

void write(base::Writer& out, const Spec& s) {
  out.put(static_cast<std::uint32_t>(s.rows.size()));
  for (const Workload& row : s.rows) {
    out.text(row.backend).put(static_cast<std::uint8_t>(row.op == OpKind::kRead));
    out.put(row.block_bytes).put(row.batch).put(row.warm_iterations).put(row.iterations);
  }
  out.put(s.threads).put(s.depth).put(static_cast<std::uint8_t>(s.bidirectional));
  out.put(static_cast<std::uint8_t>(s.memory == MemoryChoice::kMalloc));
  out.put(static_cast<std::uint64_t>(s.warmup.count()));
  out.put(static_cast<std::uint64_t>(s.duration.count()));
  out.put(static_cast<std::uint8_t>(s.verify)).text(s.require).put(s.seed);
  out.put(static_cast<std::uint64_t>(s.interval.count()));
}

Spec readSpec(base::Reader& in) {
  Spec s;
  for (auto left = in.get<std::uint32_t>(); left > 0 && in.ok(); --left) {
    Workload& row = s.rows.emplace_back();
    row.backend = in.text();
    row.op = in.get<std::uint8_t>() != 0 ? OpKind::kRead : OpKind::kWrite;
    row.block_bytes = in.get<std::uint64_t>();
    row.batch = in.get<std::uint32_t>();
    row.warm_iterations = in.get<std::uint64_t>();
    row.iterations = in.get<std::uint64_t>();
  }
  s.threads = std::clamp(in.get<std::uint32_t>(), 1U, kMostStreams);
  s.depth = std::clamp(in.get<std::uint32_t>(), 1U, kMostStreams);
  s.bidirectional = in.get<std::uint8_t>() != 0;
  s.memory = in.get<std::uint8_t>() != 0 ? MemoryChoice::kMalloc : MemoryChoice::kAllocate;
  s.warmup = std::chrono::nanoseconds(in.get<std::uint64_t>());
  s.duration = std::chrono::nanoseconds(in.get<std::uint64_t>());
  s.verify = static_cast<Verified>(
      std::min<std::uint8_t>(in.get<std::uint8_t>(), static_cast<std::uint8_t>(Verified::kFull)));
  s.require = in.text();
  s.seed = in.get<std::uint64_t>();
  s.interval = std::chrono::nanoseconds(in.get<std::uint64_t>());
  return s;
}

}  // namespace

base::Bytes encode(const P2pRequest& r) {
  base::Writer out = begin();
  out.put(static_cast<std::uint8_t>(r.verb)).put(r.number);
  if (r.verb == P2pRequest::Verb::kRun) write(out, r.spec);
  return out.take();
}

bool isRequest(std::span<const std::byte> note) {
  return base::Reader(note).get<std::uint32_t>() == kMagic;
}

Result<P2pRequest> decodeRequest(std::span<const std::byte> note) {
  base::Reader in(note);
  const bool known = begins(in);
  P2pRequest out{.verb = static_cast<P2pRequest::Verb>(in.get<std::uint8_t>())};
  out.number = in.get<std::uint64_t>();
  if (!known || !in.ok() || out.verb > P2pRequest::Verb::kLeave) return garbled();
  if (out.verb == P2pRequest::Verb::kRun) out.spec = readSpec(in);
  if (!in.finished()) return garbled();
  for (const Workload& row : out.spec.rows) VIADUCT_CHECK(check(row));
  return out;
}

base::Bytes encode(const P2pAnswer& answer) {
  base::Writer out = begin();
  out.put(answer.number).put(std::uint8_t{answer.value ? std::uint8_t{1} : std::uint8_t{0}});
  if (answer.value) return out.text(*answer.value).take();
  const Error& e = answer.value.error();
  out.put(static_cast<std::uint8_t>(e.code)).text(e.operation).text(e.detail);
  out.put(static_cast<std::uint32_t>(e.os_errno)).text(e.device).text(e.cause);
  return out.text(e.remedy).take();
}

Result<P2pAnswer> decodeAnswer(std::span<const std::byte> note) {
  base::Reader in(note);
  const bool known = begins(in);
  P2pAnswer out{.number = in.get<std::uint64_t>()};
  if (in.get<std::uint8_t>() == 1) {
    out.value = in.text();
  } else {
    Error e;
    e.code = static_cast<Code>(in.get<std::uint8_t>());
    e.operation = in.text();
    e.detail = in.text();
    e.os_errno = static_cast<int>(in.get<std::uint32_t>());
    e.device = in.text();
    e.cause = in.text();
    e.remedy = in.text();
    if (e.code > Code::kProtocol) return garbled();
    out.value = std::move(e);
  }
  if (!known || !in.finished()) return garbled();
  return out;
}

}  // namespace viaduct::measure::p2p
