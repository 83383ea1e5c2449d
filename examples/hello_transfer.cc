// Two agents in one process, and one transfer between them.
#include <viaduct/viaduct.h>

#include <cstdio>
#include <cstring>

using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kBlock = 4096;
constexpr std::uint64_t kBlocks = 256;

viaduct::Result<std::string> copyThere() {
  VIADUCT_TRY(auto alice, viaduct::Agent::open({.name = "alice"}));
  VIADUCT_TRY(auto bob, viaduct::Agent::open({.name = "bob"}));

  // Memory that peers can reach until its Pin is released; the destructor releases it as well.
  VIADUCT_TRY(auto from, alice.allocate(kBlock * kBlocks));
  VIADUCT_TRY(auto into, bob.allocate(kBlock * kBlocks, {.label = "inbox"}));
  std::memset(from.data(), 'v', from.size());

  // Bob's card admits Alice. Between processes it travels by file, socket or pod annotation.
  VIADUCT_TRY(auto peer, alice.importCard(bob.exportCard()));
  VIADUCT_CHECK(peer.ready(5s));
  VIADUCT_TRY(auto inbox, peer.waitPin("inbox", 5s));

  // One run describes all blocks of a side. A plan can be posted as often as needed.
  VIADUCT_TRY(auto here, viaduct::Blocks::strided(
                             {.base = from.info().address, .bytes = kBlock, .count = kBlocks}));
  VIADUCT_TRY(auto there,
              viaduct::Blocks::strided({.base = inbox.address, .bytes = kBlock, .count = kBlocks}));
  VIADUCT_TRY(auto transfer, alice.plan(viaduct::OpKind::kWrite, peer, {here}, {there}));
  VIADUCT_CHECK(transfer.post());
  VIADUCT_CHECK(transfer.wait(5s));

  if (std::memcmp(from.data(), into.data(), from.size()) != 0)
    return viaduct::Error{.operation = "compare", .detail = "the copy differs"};
  return transfer.path().text();
}

}  // namespace

int main() {
  const auto path = copyThere();
  if (!path) {
    std::fprintf(stderr, "%s\n", path.error().text().c_str());
    return 1;
  }
  std::printf("copied: %s\n", path->c_str());
  return 0;
}
