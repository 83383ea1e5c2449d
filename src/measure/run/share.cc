#include "measure/run/share.h"

#include <algorithm>
#include <bit>

#include "base/bytes.h"

namespace viaduct::measure {
namespace {

constexpr std::uint32_t kMostShareItems = 1U << 20U;
constexpr std::uint32_t kNobody = 0xffffffffU;  // no rank

void put(base::Writer& to, double value) { to.put(std::bit_cast<std::uint64_t>(value)); }
double getDouble(base::Reader& from) { return std::bit_cast<double>(from.get<std::uint64_t>()); }

std::string asText(base::Writer& writer) {
  const base::Bytes bytes = writer.take();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
base::Reader readerOf(std::string_view text) {
  return base::Reader(std::as_bytes(std::span(text)));
}

Error garbled() {
  return {.code = Code::kProtocol,
          .operation = "bench",
          .detail = "a member sent a malformed row result"};
}

void write(base::Writer& to, const Failure& failure) {
  const Error e = failure.value_or(Error{});
  to.put(static_cast<std::uint8_t>(failure ? 1 : 0));
  to.put(static_cast<std::uint8_t>(e.code)).text(e.operation).text(e.detail);
  to.put(static_cast<std::uint32_t>(e.os_errno)).text(e.peer).text(e.device);
  to.text(e.cause).text(e.remedy);
}

bool read(base::Reader& from, Failure& into) {
  const bool failed = from.get<std::uint8_t>() != 0;
  Error e;
  e.code = static_cast<Code>(from.get<std::uint8_t>());
  e.operation = from.text();
  e.detail = from.text();
  e.os_errno = static_cast<int>(from.get<std::uint32_t>());
  e.peer = from.text();
  e.device = from.text();
  e.cause = from.text();
  e.remedy = from.text();
  if (failed) into = std::move(e);
  return from.ok();
}

void write(base::Writer& to, const Latency& l) {
  for (const double v :
       {l.mean, l.p50, l.p90.value_or(0), l.p95.value_or(0), l.p99, l.p99_9, l.max})
    put(to, v);
}
Latency readLatency(base::Reader& from) {
  Latency l{.p90 = 0, .p95 = 0};
  for (double* v : {&l.mean, &l.p50, &*l.p90, &*l.p95, &l.p99, &l.p99_9, &l.max})
    *v = getDouble(from);
  return l;
}

// How many items follow; 0 when it cannot be so many.
std::uint32_t shareCountOf(base::Reader& from) {
  const auto count = from.get<std::uint32_t>();
  return count <= kMostShareItems ? count : 0;
}

void write(base::Writer& to, const TimeStretch& s) {
  to.put(s.stream).put(s.iterations).put(s.start_ns);
  to.put(static_cast<std::uint32_t>(s.parts.size()));
  for (const LaneTimes::Part& part : s.parts) {
    to.put(part.bytes);
    put(to, part.seconds);
  }
}

TimeStretch readStretch(base::Reader& from) {
  TimeStretch s{from.get<std::uint32_t>(), from.get<std::uint64_t>(), from.get<std::uint64_t>()};
  for (auto parts = shareCountOf(from); parts > 0 && from.ok(); --parts) {
    const auto bytes = from.get<std::uint64_t>();
    s.parts.push_back({bytes, getDouble(from)});
  }
  return s;
}

}  // namespace

Latency latencyOf(const Histogram& ns) {
  const auto us = [&](double q) { return ns.quantile(q) * 1e-3; };
  return {.mean = ns.mean() * 1e-3,
          .p50 = us(0.5),
          .p90 = us(0.9),
          .p95 = us(0.95),
          .p99 = us(0.99),
          .p99_9 = us(0.999),
          .max = static_cast<double>(ns.max()) * 1e-3};
}

std::string encode(const Failure& failure) {
  base::Writer out;
  write(out, failure);
  return asText(out);
}

Result<Failure> decodeFailure(std::string_view text) {
  base::Reader in = readerOf(text);
  Failure failure;
  if (!read(in, failure) || !in.finished()) return garbled();
  return failure;
}

std::string encode(const RoundShare& share) {
  base::Writer out;
  write(out, share.failure);
  out.put(share.left_ns).put(share.stop_by.value_or(kNobody));
  out.put(static_cast<std::uint32_t>(share.streams.size()));
  for (const TimeStretch& s : share.streams) write(out, s);
  return asText(out);
}

Result<RoundShare> decodeRound(std::string_view text) {
  base::Reader in = readerOf(text);
  RoundShare share;
  if (!read(in, share.failure)) return garbled();
  share.left_ns = in.get<std::uint64_t>();
  if (const auto rank = in.get<std::uint32_t>(); rank != kNobody) share.stop_by = rank;
  for (auto left = shareCountOf(in); left > 0 && in.ok(); --left)
    share.streams.push_back(readStretch(in));
  if (!in.finished()) return garbled();
  return share;
}

std::string encode(const RowShare& share) {
  base::Writer out;
  write(out, share.failure);
  out.put(static_cast<std::uint32_t>(share.streams.size()));
  for (const StreamShare& s : share.streams) {
    out.put(s.stream).put(s.iterations);
    write(out, s.latency_us);
  }
  for (const Histogram* h : {&share.latency, &share.prep, &share.post, &share.tx}) h->encode(out);
  put(out, share.cpu.used);
  put(out, share.cpu.over);
  put(out, share.cpu.machine);
  out.put(share.cpu.processors);
  for (const double v : {share.clock.seconds, share.clock.ahead, share.clock.largest}) put(out, v);
  out.put(share.transfers)
      .text(share.mismatch)
      .put(share.checks)
      .put(share.missed)
      .put(static_cast<std::uint32_t>(share.intervals.size()));
  for (const RateInterval& i : share.intervals)
    for (const double v : {i.start, i.end, i.gb_per_s}) put(out, v);
  out.text(share.observation);
  return asText(out);
}

Result<RowShare> decodeShare(std::string_view text) {
  base::Reader in = readerOf(text);
  RowShare share;
  if (!read(in, share.failure)) return garbled();
  for (auto left = shareCountOf(in); left > 0 && in.ok(); --left) {
    StreamShare& s = share.streams.emplace_back();
    s.stream = in.get<std::uint32_t>();
    s.iterations = in.get<std::uint64_t>();
    s.latency_us = readLatency(in);
  }
  for (Histogram* h : {&share.latency, &share.prep, &share.post, &share.tx})
    if (!Histogram::decode(in, *h)) return garbled();
  share.cpu.used = getDouble(in);
  share.cpu.over = getDouble(in);
  share.cpu.machine = getDouble(in);
  share.cpu.processors = in.get<std::uint32_t>();
  for (double* v : {&share.clock.seconds, &share.clock.ahead, &share.clock.largest})
    *v = getDouble(in);
  share.transfers = in.get<std::uint64_t>();
  share.mismatch = in.text();
  share.checks = in.get<std::uint64_t>();
  share.missed = in.get<std::uint64_t>();
  for (auto left = shareCountOf(in); left > 0 && in.ok(); --left) {
    RateInterval& i = share.intervals.emplace_back();
    for (double* v : {&i.start, &i.end, &i.gb_per_s}) *v = getDouble(in);
  }
  share.observation = in.text();
  if (!in.finished()) return garbled();
  return share;
}

}  // namespace viaduct::measure
