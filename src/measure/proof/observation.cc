#include "measure/proof/observation.h"

#include <array>
#include <bit>
#include <span>

#include "base/bytes.h"

namespace viaduct::measure::proof {
namespace {

using base::Reader;
using base::Writer;

constexpr std::uint8_t kVersion = 3;

// A class, so that each of these finds all the others.
struct Wire {
  static void put(Writer& out, double value) { out.put(std::bit_cast<std::uint64_t>(value)); }
  static double number(Reader& in) { return std::bit_cast<double>(in.get<std::uint64_t>()); }

  static void put(Writer& out, const std::string& text) { out.text(text); }
  static void get(Reader& in, std::string& text) { text = in.text(); }

  template <class T>
  static void put(Writer& out, const std::vector<T>& all) {
    out.put(static_cast<std::uint32_t>(all.size()));
    for (const T& one : all) put(out, one);
  }
  template <class T>
  static void get(Reader& in, std::vector<T>& all) {
    const auto count = in.get<std::uint32_t>();
    for (std::uint32_t i = 0; i < count && in.ok(); ++i) get(in, all.emplace_back());
  }

  static void put(Writer& out, const host::Device& d) {
    out.text(d.name).put(static_cast<std::uint8_t>(d.kind));
    put(out, d.addresses);
    out.put(d.link_bytes_per_s).put(d.pcie_bytes_per_s).text(d.pcie);
    out.put(static_cast<std::uint32_t>(d.numa));
    put(out, d.lower);
  }
  static void get(Reader& in, host::Device& d) {
    d.name = in.text();
    d.kind = static_cast<host::DeviceKind>(in.get<std::uint8_t>());
    get(in, d.addresses);
    d.link_bytes_per_s = in.get<std::uint64_t>();
    d.pcie_bytes_per_s = in.get<std::uint64_t>();
    d.pcie = in.text();
    d.numa = static_cast<int>(in.get<std::uint32_t>());
    get(in, d.lower);
  }

  static void put(Writer& out, const CopyRate& r) {
    out.put(r.bytes);
    put(out, r.gb_per_s);
  }
  static void get(Reader& in, CopyRate& r) {
    r.bytes = in.get<std::uint64_t>();
    r.gb_per_s = number(in);
  }

  static void put(Writer& out, const HostPlace& p) {
    out.text(p.hostname).text(p.boot_id).text(p.network);
    out.raw(std::as_bytes(std::span(p.process)));
    put(out, p.devices);
    put(out, p.rails);
    out.put(p.memory.threads);
    put(out, p.memory.one_thread_gb_per_s);
    put(out, p.memory.all_threads);
  }
  static void get(Reader& in, HostPlace& p) {
    p.hostname = in.text();
    p.boot_id = in.text();
    p.network = in.text();
    p.process = in.array<base::ProcessId{}.size()>();
    get(in, p.devices);
    get(in, p.rails);
    p.memory.threads = in.get<std::uint32_t>();
    p.memory.one_thread_gb_per_s = number(in);
    get(in, p.memory.all_threads);
  }

  static void put(Writer& out, const host::Counter& c) {
    out.text(c.device).put(c.sent).put(c.received).put(c.unit);
  }
  static void get(Reader& in, host::Counter& c) {
    c.device = in.text();
    c.sent = in.get<std::uint64_t>();
    c.received = in.get<std::uint64_t>();
    c.unit = in.get<std::uint32_t>();
  }

  static void put(Writer& out, const Reading& r) {
    out.put(r.at_ns);
    put(out, r.counters);
  }
  static void get(Reader& in, Reading& r) {
    r.at_ns = in.get<std::uint64_t>();
    get(in, r.counters);
  }

  static void put(Writer& out, const PathShare& s) {
    out.text(s.backend).text(s.way).text(s.rail).put(s.bytes).put(s.ops);
    out.put(s.injected).put(s.batches);
  }
  static void get(Reader& in, PathShare& s) {
    s.backend = in.text();
    s.way = in.text();
    s.rail = in.text();
    s.bytes = in.get<std::uint64_t>();
    s.ops = in.get<std::uint64_t>();
    s.injected = in.get<std::uint64_t>();
    s.batches = in.get<std::uint64_t>();
  }

  static void put(Writer& out, const Claim& c) {
    out.put(c.peer).put(static_cast<std::uint8_t>(c.op));
    put(out, c.path.shares);
  }
  static void get(Reader& in, Claim& c) {
    c.peer = in.get<std::uint32_t>();
    c.op = in.get<std::uint8_t>() == 0 ? OpKind::kWrite : OpKind::kRead;
    get(in, c.path.shares);
  }
};

bool makesSense(const Observation& o) {
  for (const host::Device& d : o.place.devices)
    if (d.kind > host::DeviceKind::kRdma) return false;
  for (const Reading* r : {&o.quiet, &o.before, &o.after})
    for (const host::Counter& c : r->counters)
      if (c.unit != 1 && c.unit != 4) return false;
  return o.quiet.at_ns <= o.before.at_ns && o.before.at_ns <= o.after.at_ns;
}

}  // namespace

std::string encode(const Observation& observation) {
  Writer out;
  out.put(kVersion);
  Wire::put(out, observation.place);
  Wire::put(out, observation.quiet);
  Wire::put(out, observation.before);
  Wire::put(out, observation.after);
  Wire::put(out, observation.claims);
  const base::Bytes& bytes = out.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<Observation> decodeObservation(std::string_view text) {
  Reader in(std::as_bytes(std::span(text)));
  Observation out;
  const bool known = in.get<std::uint8_t>() == kVersion;
  if (known) {
    Wire::get(in, out.place);
    Wire::get(in, out.quiet);
    Wire::get(in, out.before);
    Wire::get(in, out.after);
    Wire::get(in, out.claims);
  }
  if (known && in.finished() && makesSense(out)) return out;
  return Error{.code = Code::kProtocol,
               .operation = "path proof",
               .detail = known ? "a member sent malformed counters"
                               : "a member with another version sent its counters",
               .remedy = "run the same version of viaduct on all members"};
}

}  // namespace viaduct::measure::proof
