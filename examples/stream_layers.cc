// A prefill agent pushes the KV cache of a request layer by layer, and a decode agent uses each
// layer as it arrives. In production the two agents are processes.
#include <viaduct/viaduct.h>

#include <array>
#include <cstdio>
#include <numeric>
#include <thread>

using namespace std::chrono_literals;
using viaduct::Ok;
using viaduct::Status;

namespace {

constexpr std::uint32_t kLayers = 32;

// A small cache: 2 heads of 64 elements, K and V, 64 blocks of 16 tokens.
viaduct::Result<viaduct::KvLayout> layoutAt(std::uint64_t address) {
  std::vector<std::uint32_t> layers(kLayers);
  std::iota(layers.begin(), layers.end(), 0);
  return viaduct::arrangeKv(
      {.groups = {{.caches = {{.layers = layers, .kv_heads = 2, .head_size = 64}}}}},
      viaduct::KvArrangement::kApart, address, 64);
}

Status prefill(viaduct::KvPush& push) {
  for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
    // ... compute the layer ...
    VIADUCT_CHECK(push.ready(layer));  // posts its transfer and returns
  }
  return push.wait(10s);  // the blocks may be used again
}

Status decode(const viaduct::KvArrival& arrival) {
  for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
    VIADUCT_CHECK(arrival.waitLayer(layer, 10s));
    // ... use the layer ...
  }
  return Ok{};
}

Status run() {
  VIADUCT_TRY(auto p, viaduct::Agent::open({.name = "prefill"}));
  VIADUCT_TRY(auto d, viaduct::Agent::open({.name = "decode"}));
  VIADUCT_TRY(const auto empty, layoutAt(0));
  const std::uint64_t bytes = viaduct::kvExtent(empty).bytes;
  VIADUCT_TRY(auto p_pool, p.allocate(bytes, {.label = "kv"}));
  VIADUCT_TRY(auto d_pool, d.allocate(bytes, {.label = "kv"}));
  VIADUCT_TRY(auto to, p.importCard(d.exportCard()));
  VIADUCT_CHECK(to.ready(10s));
  VIADUCT_TRY(auto from, d.peer("prefill"));
  VIADUCT_TRY(const auto there, to.waitPin("kv", 10s));

  // Once for each pair of layouts.
  VIADUCT_TRY(const auto source, layoutAt(p_pool.info().address));
  VIADUCT_TRY(const auto destination, layoutAt(there.address));
  VIADUCT_TRY(const auto layers, viaduct::KvLayers::plan(source, destination));

  // For each request. Both ends know the number and the layers; the prefill end has both block
  // tables.
  VIADUCT_TRY(auto arrival, viaduct::KvArrival::open(d, from, layers.layers(), {.stream = 1}));
  const std::array blocks{viaduct::KvBlocks{.source = {3, 1, 4}, .destination = {15, 9, 2}}};
  VIADUCT_TRY(auto push, viaduct::KvPush::open(p, to, layers, blocks, {.stream = 1}));

  Status pushed = Ok{};
  std::thread prefiller([&] { pushed = prefill(push); });
  Status used = decode(arrival);
  prefiller.join();
  VIADUCT_CHECK(std::move(pushed));
  return used;
}

}  // namespace

int main() {
  if (const Status done = run(); !done) {
    std::fprintf(stderr, "%s\n", done.error().text().c_str());
    return 1;
  }
  std::printf("%u layers arrived\n", kLayers);
  return 0;
}
