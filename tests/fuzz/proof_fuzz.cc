// Any messages between members of a measurement: questions, answers, and the traffic of their
// devices. Each is refused or can be judged, without a crash.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "fuzz/samples.h"
#include "measure/p2p/request.h"
#include "measure/proof/judge.h"

namespace {

using namespace viaduct;
using namespace viaduct::measure;

proof::Observation someObservation() {
  const Path path{{{"tcp", "socket", "10.0.0.1", 5000, 2}, {"ucx", "rc", "mlx5_0:1", 7000, 1}}};
  proof::Observation out;
  out.place = {.hostname = "a",
               .boot_id = "b",
               .network = "n",
               .devices = {{.name = "eth0",
                            .kind = host::DeviceKind::kEthernet,
                            .addresses = {"10.0.0.1"},
                            .link_bytes_per_s = 1000},
                           {.name = "mlx5_0", .kind = host::DeviceKind::kRdma}},
               .rails = {"eth0", "mlx5_0"},
               .memory = {2, 5.0, {{1000, 10.0}}}};
  out.quiet = {1, {{"eth0", 1, 1, 1}, {"mlx5_0", 1, 1, 4}}};
  out.before = {2, {{"eth0", 2, 2, 1}, {"mlx5_0", 2, 2, 4}}};
  out.after = {9, {{"eth0", 9000, 9000, 1}, {"mlx5_0", 2000, 2000, 4}}};
  out.claims = {{1, OpKind::kWrite, path}, {0, OpKind::kRead, path}};
  return out;
}

}  // namespace

std::vector<fuzz::Sample> viaduct::fuzz::samples() {
  const std::string seen = encode(someObservation());
  p2p::P2pRequest request{.verb = p2p::P2pRequest::Verb::kRun, .number = 1};
  request.spec.rows = {{.backend = "tcp", .block_bytes = 4096, .batch = 2}};
  return {sampleOf(std::as_bytes(std::span(seen))), sampleOf(p2p::encode(request)),
          sampleOf(p2p::encode(p2p::P2pAnswer{.number = 1, .value = Error{.detail = "no"}}))};
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  static_cast<void>(p2p::decodeRequest(bytes));
  static_cast<void>(p2p::decodeAnswer(bytes));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto seen = proof::decodeObservation(text);
  if (!seen) return 0;
  const std::array both{*seen, someObservation()};
  const auto judged = proof::judge(both, {.require = "rdma,not-tcp", .gb_per_s = 1}, {});
  if (verdictName(judged.verdict) == std::string_view("?")) std::abort();
  return 0;
}
