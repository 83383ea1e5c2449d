// A prefill agent publishes the KV cache of a request layer by layer, and a decode agent uses each
// layer as it arrives. In production the two agents are processes.
#include <viaduct/viaduct.h>

#include <array>
#include <cstdio>
#include <numeric>
#include <thread>
#include <vector>

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

Status prefill(viaduct::PublishedParcel& request, std::vector<viaduct::PublishedPart> layers) {
  for (viaduct::PublishedPart& layer : layers) {
    // ... compute the layer ...
    VIADUCT_CHECK(request.ready(std::move(layer)));  // tells the decode agent and returns
  }
  VIADUCT_CHECK(request.wait(10s));  // the blocks may be used again
  return Ok{};
}

Status decode(const viaduct::ParcelFetch& request, const viaduct::KvLayers& layers) {
  for (const viaduct::ParcelPart layer : layers.parts()) {
    VIADUCT_CHECK(request.waitPart(layer, 10s));
    // ... use the layer, ready to forget the request if it fails ...
  }
  return request.wait(10s);  // every byte of the request is here
}

Status run() {
  VIADUCT_TRY(auto p, viaduct::Agent::open({.name = "prefill"}));
  VIADUCT_TRY(auto d, viaduct::Agent::open({.name = "decode"}));
  VIADUCT_TRY(const auto anywhere, layoutAt(0));
  const std::uint64_t bytes = viaduct::kvExtent(anywhere).bytes;
  VIADUCT_TRY(auto p_pool, p.allocate(bytes));
  VIADUCT_TRY(auto d_pool, d.allocate(bytes));
  VIADUCT_TRY(auto to_prefill, d.importCard(p.exportCard()));
  VIADUCT_CHECK(to_prefill.ready(10s));
  VIADUCT_TRY(const auto source, layoutAt(p_pool.info().address));
  VIADUCT_TRY(const auto destination, layoutAt(d_pool.info().address));
  // The decode agent plans once for each pair of layouts. The places of the source do not matter.
  VIADUCT_TRY(const auto layers, viaduct::KvLayers::plan(anywhere, destination));

  // For each request, both ends know its name and its tokens. The decode agent may begin first.
  const std::array here{viaduct::KvBlocks{.source = {0, 1, 2}, .destination = {15, 9, 2}}};
  VIADUCT_TRY(auto into, layers.into(here));
  VIADUCT_TRY(auto fetch, d.fetch(to_prefill, "request 8a17", {.into = std::move(into)}));
  VIADUCT_TRY(auto parts, viaduct::kvParts(source));
  const std::array<viaduct::Indices, 1> table{{{3, 1, 4}}};
  VIADUCT_TRY(auto pages, viaduct::kvPages(source, table));
  VIADUCT_TRY(auto request,
              p.publish("request 8a17", {.version = 1, .parts = std::move(parts), .takers = 1}));

  Status computed = Ok{};
  std::thread prefiller([&] { computed = prefill(request, std::move(pages)); });
  Status used = decode(fetch, layers);
  prefiller.join();
  VIADUCT_CHECK(std::move(computed));
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
