// Lends a block to another agent, lets it read, and revokes the lease: the next read is stale. Both
// agents are in this process, to be short. usage: lease
#include <viaduct/viaduct.h>

#include <cstdio>
#include <cstring>

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kBlock = 4096, kBlocks = 16;

viaduct::Blocks blocksOf(const viaduct::Pin& pin) {
  return *viaduct::Blocks::strided({.base = pin.info().address, .bytes = kBlock, .count = kBlocks});
}

viaduct::Status run() {
  VIADUCT_TRY(auto prefill, viaduct::Agent::open({.name = "prefill"}));
  VIADUCT_TRY(auto decode, viaduct::Agent::open({.name = "decode"}));
  VIADUCT_TRY(auto cache, prefill.allocate(kBlock * kBlocks, {.label = "cache"}));
  VIADUCT_TRY(auto copy, decode.allocate(kBlock * kBlocks));
  VIADUCT_TRY(const auto to_prefill, decode.importCard(prefill.exportCard()));
  VIADUCT_CHECK(to_prefill.ready(10s));
  VIADUCT_CHECK(to_prefill.waitPin("cache", 10s));
  VIADUCT_TRY(const auto to_decode, prefill.peer("decode"));
  VIADUCT_CHECK(to_decode.ready(10s));

  // The owner lends block 3. The ticket would go to the other process with the engine's request.
  std::strcpy(reinterpret_cast<char*>(cache.data() + 3 * kBlock), "of request 1");
  VIADUCT_TRY(auto lease, prefill.lease(to_decode, {blocksOf(cache), {3}}, {.duration = 30s}));
  const auto ticket = lease.ticket();

  // The borrower reads it into its block 0.
  VIADUCT_TRY(const auto borrowed, decode.borrow(to_prefill, ticket));
  VIADUCT_TRY(auto read, decode.plan(viaduct::OpKind::kRead, borrowed, {blocksOf(copy), {0}}));
  VIADUCT_CHECK(read.post());
  VIADUCT_CHECK(read.wait());
  std::printf("read: %s\n", reinterpret_cast<const char*>(copy.data()));

  // The owner needs the block for another request. From here on no read returns its new bytes.
  VIADUCT_CHECK(lease.revoke());
  std::strcpy(reinterpret_cast<char*>(cache.data() + 3 * kBlock), "of request 2");
  const viaduct::Status late = read.post();
  if (late || late.error().code != viaduct::Code::kStale)
    return viaduct::Error{.operation = "post", .detail = "a late read was not refused"};
  std::printf("%s\n", late.error().text().c_str());
  return viaduct::Ok{};
}

}  // namespace

int main() {
  const viaduct::Status done = run();
  if (!done) std::fprintf(stderr, "%s\n", done.error().text().c_str());
  return done ? 0 : 1;
}
