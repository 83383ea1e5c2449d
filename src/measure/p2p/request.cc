#include "measure/p2p/request.h"

#include <algorithm>
#include <utility>

#include "base/fields.h"

namespace viaduct::measure {

// base::Fields finds the fields() functions below by argument-dependent lookup, so these stay
// outside of the unnamed namespace.
auto fields(base::Is<Workload> auto& row) {
  return std::tie(row.backend, row.op, row.block_bytes, row.batch, row.warm_iterations,
                  row.iterations);
}
auto fields(base::Is<Spec> auto& s) {
  return std::tie(s.rows, s.threads, s.depth, s.bidirectional, s.memory, s.warmup, s.duration,
                  s.verify, s.require, s.seed, s.interval);
}

namespace p2p {
namespace {

// "VP2P", and the version of the format.
constexpr std::uint32_t kMagic = 0x50325056;
constexpr std::uint8_t kVersion = 1;

constexpr std::uint32_t kMostStreams = 1024;  // also the most transfers in flight of a stream

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

// Limits the values of a spec from an unknown peer. Returns false if the spec makes no sense.
bool makesSense(Spec& s) {
  s.threads = std::clamp(s.threads, 1U, kMostStreams);
  s.depth = std::clamp(s.depth, 1U, kMostStreams);
  return s.memory <= MemoryChoice::kMalloc && s.verify <= Verified::kFull &&
         std::all_of(s.rows.begin(), s.rows.end(),
                     [](const Workload& row) { return row.op <= OpKind::kRead; });
}

}  // namespace

base::Bytes encode(const P2pRequest& r) {
  base::Writer out = begin();
  base::Fields::put(out, r.verb, r.number);
  if (r.verb == P2pRequest::Verb::kRun) base::Fields::put(out, r.spec);
  return out.take();
}

bool isRequest(std::span<const std::byte> note) {
  return base::Reader(note).get<std::uint32_t>() == kMagic;
}

Result<P2pRequest> decodeRequest(std::span<const std::byte> note) {
  base::Reader in(note);
  const bool known = begins(in);
  P2pRequest out;
  base::Fields::get(in, out.verb, out.number);
  if (!known || !in.ok() || out.verb > P2pRequest::Verb::kLeave) return garbled();
  if (out.verb == P2pRequest::Verb::kRun) base::Fields::get(in, out.spec);
  if (!in.finished() || !makesSense(out.spec)) return garbled();
  for (const Workload& row : out.spec.rows) VIADUCT_CHECK(check(row));
  return out;
}

base::Bytes encode(const P2pAnswer& answer) {
  base::Writer out = begin();
  base::Fields::put(out, answer.number, answer.value.has_value());
  if (answer.value) return out.text(*answer.value).take();
  const Error& e = answer.value.error();
  base::Fields::put(out, e.code, e.operation, e.detail, e.os_errno, e.device, e.cause, e.remedy);
  return out.take();
}

Result<P2pAnswer> decodeAnswer(std::span<const std::byte> note) {
  base::Reader in(note);
  const bool known = begins(in);
  P2pAnswer out{.number = in.get<std::uint64_t>()};
  if (in.get<std::uint8_t>() == 1) {
    out.value = in.text();
  } else {
    Error e;
    base::Fields::get(in, e.code, e.operation, e.detail, e.os_errno, e.device, e.cause, e.remedy);
    if (e.code > Code::kCorrupt) return garbled();
    out.value = std::move(e);
  }
  if (!known || !in.finished()) return garbled();
  return out;
}

}  // namespace p2p
}  // namespace viaduct::measure
