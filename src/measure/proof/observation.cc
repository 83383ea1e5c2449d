#include "measure/proof/observation.h"

#include <algorithm>

#include "base/path_fields.h"

// base::Fields finds the fields() functions below by argument-dependent lookup, so these stay
// outside of the unnamed namespace.
namespace viaduct {

auto fields(base::Is<SocketStatistics> auto& s) {
  return std::tie(s.sockets, s.sent_bytes, s.received_bytes, s.sent_segments, s.repeated_segments,
                  s.busy, s.send_limited, s.window_limited, s.sealing, s.round_trip,
                  s.segment_bytes, s.path_mtu);
}

namespace host {

auto fields(base::Is<LinkFacts> auto& l) {
  return std::tie(l.name, l.mtu, l.dropped, l.shaper, l.shaped_bytes_per_s);
}
auto fields(base::Is<ProcessLimits> auto& p) {
  return std::tie(p.processors, p.allowed, p.quota, p.send_buffer, p.receive_buffer, p.huge_pages,
                  p.huge_shared_pages, p.tracer);
}
auto fields(base::Is<ProcessTimes> auto& t) {
  return std::tie(t.ran, t.waited, t.throttled, t.busy);
}
auto fields(base::Is<Device> auto& d) {
  return std::tie(d.name, d.kind, d.addresses, d.link_bytes_per_s, d.pcie_bytes_per_s, d.pcie,
                  d.numa, d.lower);
}
auto fields(base::Is<LinkBytes> auto& c) { return std::tie(c.sent, c.received); }
auto fields(base::Is<Counter> auto& c) {
  return std::tie(c.device, c.sent, c.received, c.unit, c.netlink);
}
auto fields(base::Is<KernelStart> auto& k) { return std::tie(k.by_clock, k.by_stat); }
auto fields(base::Is<DiskBytes> auto& d) { return std::tie(d.read, d.written); }
auto fields(base::Is<StorageStack> auto& s) { return std::tie(s.layers, s.devices, s.in_memory); }
auto fields(base::Is<DiskCount> auto& d) { return std::tie(d.device, d.bytes); }

}  // namespace host
namespace measure::proof {

auto fields(base::Is<CopyRate> auto& r) { return std::tie(r.bytes, r.gb_per_s); }
auto fields(base::Is<GpuRate> auto& r) { return std::tie(r.from, r.to, r.rates, r.why_not); }
auto fields(base::Is<HostPlace> auto& p) {
  return std::tie(p.hostname, p.boot_id, p.kernel, p.network, p.process, p.devices, p.rails,
                  p.memory.threads, p.memory.one_thread_gb_per_s, p.memory.all_threads, p.gpus,
                  p.gpu_rates, p.storage);
}
auto fields(base::Is<RailSockets> auto& r) { return std::tie(r.rail, r.figures); }
auto fields(base::Is<Reading> auto& r) {
  return std::tie(r.at_ns, r.counters, r.disk, r.devices, r.causes_at_ns, r.links, r.rails,
                  r.times);
}
auto fields(base::Is<Claim> auto& c) {
  return std::tie(c.peer, c.op, c.path.shares, c.stored, c.device, c.far_device);
}
auto fields(base::Is<Observation> auto& o) {
  return std::tie(o.place, o.quiet, o.before, o.after, o.limits, o.claims);
}

namespace {

constexpr std::uint8_t kProofVersion = 4;

bool makesSense(const Observation& o) {
  for (const host::Device& d : o.place.devices)
    if (d.kind > host::DeviceKind::kRdma) return false;
  for (const Claim& c : o.claims)
    if (c.op > OpKind::kRead) return false;
  for (const Reading* r : {&o.quiet, &o.before, &o.after})
    for (const host::Counter& c : r->counters)
      if (c.unit != 1 && c.unit != 4) return false;
  if (o.before.causes_at_ns > o.after.causes_at_ns) return false;
  return o.quiet.at_ns <= o.before.at_ns && o.before.at_ns <= o.after.at_ns;
}

}  // namespace

std::chrono::nanoseconds sealingOf(const Observation& observation) {
  std::chrono::nanoseconds out{0};
  for (const RailSockets& rail : observation.after.rails) out += rail.figures.sealing;
  for (const RailSockets& rail : observation.before.rails) out -= rail.figures.sealing;
  return std::max(out, std::chrono::nanoseconds(0));
}

std::string encode(const Observation& observation) {
  return base::packed(kProofVersion, observation);
}

Result<Observation> decodeObservation(std::string_view text) {
  std::uint8_t version = 0;
  Observation out;
  const bool whole = base::unpack(text, version, out), known = version == kProofVersion;
  if (known && whole && makesSense(out)) return out;
  return Error{.code = Code::kProtocol,
               .operation = "path proof",
               .detail = known ? "a member sent malformed counters"
                               : "a member with another version sent its counters",
               .remedy = "run the same version of viaduct on all members"};
}

}  // namespace measure::proof
}  // namespace viaduct
