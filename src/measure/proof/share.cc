#include "measure/proof/share.h"

#include "base/fields.h"

namespace viaduct::measure {

// base::Fields finds the fields() functions below by argument-dependent lookup, so these stay
// outside of the unnamed namespace.
auto fields(base::Is<Latency> auto& l) {
  return std::tie(l.mean, l.p50, l.p90, l.p95, l.p99, l.p99_9, l.max, l.min);
}
auto fields(base::Is<LaneTimes::Part> auto& p) { return std::tie(p.bytes, p.seconds); }
auto fields(base::Is<TimeStretch> auto& s) {
  return std::tie(s.stream, s.iterations, s.start_ns, s.parts, s.transfers);
}
auto fields(base::Is<StreamShare> auto& s) {
  return std::tie(s.stream, s.iterations, s.bytes, s.latency_us);
}
auto fields(base::Is<RateInterval> auto& i) {
  return std::tie(i.start, i.end, i.gb_per_s, i.bytes);
}
auto fields(base::Is<RoundShare> auto& s) {
  return std::tie(s.failure, s.entered_ns, s.left_ns, s.stop_by, s.exchange_s, s.nonce, s.streams,
                  s.more);
}
auto fields(base::Is<RowShare> auto& s) {
  return std::tie(s.failure, s.streams, s.latency, s.prep, s.post, s.tx, s.cpu.used, s.cpu.over,
                  s.cpu.machine, s.cpu.idle, s.cpu.processors, s.clock.seconds, s.clock.ahead,
                  s.clock.largest, s.transfers, s.bytes, s.ops, s.background.transfers,
                  s.background.gb_per_s, s.background.longest_gap_s, s.words, s.asked_per_s,
                  s.mismatch, s.checks, s.missed, s.intervals, s.gpus, s.observation);
}

namespace {

template <class T>
Result<T> decoded(std::string_view text) {
  T out;
  if (base::unpack(text, out)) return out;
  return Error{.code = Code::kProtocol,
               .operation = "bench",
               .detail = "a member sent a malformed row result"};
}

}  // namespace

std::string encode(const Failure& failure) { return base::packed(failure); }
Result<Failure> decodeFailure(std::string_view text) { return decoded<Failure>(text); }
std::string encode(const RoundShare& share) { return base::packed(share); }
Result<RoundShare> decodeRound(std::string_view text) { return decoded<RoundShare>(text); }
std::string encode(const RowShare& share) { return base::packed(share); }
Result<RowShare> decodeShare(std::string_view text) { return decoded<RowShare>(text); }

}  // namespace viaduct::measure
