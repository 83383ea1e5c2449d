#include "agent/session/lease_ticket.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/net/checksum.h"

namespace viaduct::agent {
namespace {

LeaseTicket ticketOf(Blocks blocks) {
  return {.owner = "prefill-0",
          .borrower = "decode-1",
          .owner_id = {1, 2},
          .borrower_id = {3, 4},
          .epoch = 5,
          .number = 6,
          .access = MemoryAccess::kReadWrite,
          .blocks = std::move(blocks)};
}

std::vector<Extent> extentsOf(const Blocks& blocks) {
  std::vector<Extent> out;
  for (std::uint64_t i = 0; i < blocks.count(); ++i) out.push_back(blocks[i]);
  return out;
}

// The taken blocks, as a borrower reads them from the ticket.
std::vector<Extent> carried(const Selection& selection) {
  const auto taken = takenBlocks(selection);
  if (!taken) return {};
  const auto back = LeaseTicket::decode(ticketOf(taken->blocks).encode());
  return back ? extentsOf(back->blocks) : std::vector<Extent>{};
}

TEST(LeaseTicket, ComesOutAsItWentIn) {
  const auto blocks = Blocks::strided({.base = 4096, .stride = 512, .bytes = 100, .count = 3});
  const auto back = LeaseTicket::decode(ticketOf(*blocks).encode());
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->owner, "prefill-0");
  EXPECT_EQ(back->borrower, "decode-1");
  EXPECT_EQ(back->owner_id[1], 2);
  EXPECT_EQ(back->borrower_id[1], 4);
  EXPECT_EQ(back->epoch, 5U);
  EXPECT_EQ(back->number, 6U);
  EXPECT_EQ(back->access, MemoryAccess::kReadWrite);
  EXPECT_EQ(extentsOf(back->blocks), extentsOf(*blocks));
}

TEST(LeaseTicket, KeepsTheOrderOfTheBlocks) {
  const auto blocks =
      *Blocks::strided({.base = 1U << 20U, .stride = 8192, .bytes = 4096, .count = 100});
  for (const Indices& indices :
       {Indices{0, 1, 2, 3}, Indices{9, 7, 5, 3}, Indices{3, 90, 4, 91, 5}, Indices{99}}) {
    std::vector<Extent> expected;
    for (const std::uint32_t index : indices) expected.push_back(blocks[index]);
    EXPECT_EQ(carried({blocks, indices}), expected);
  }
  EXPECT_EQ(carried({blocks, {}}), extentsOf(blocks));
}

TEST(LeaseTicket, KeepsBlocksOfUnequalSizes) {
  const auto blocks = *Blocks::list(std::vector<Extent>{{900, 100}, {100, 7}, {200, 100}});
  EXPECT_EQ(carried({blocks, {}}), extentsOf(blocks));
  EXPECT_EQ(carried({blocks, {2, 0}}), (std::vector<Extent>{{200, 100}, {900, 100}}));
}

// A million blocks at equal distances take no more bytes than one. A scattered block takes fewer
// than ten on average.
TEST(LeaseTicket, IsSmall) {
  const auto many =
      Blocks::strided({.base = 1U << 30U, .stride = 8192, .bytes = 4096, .count = 1'000'000});
  EXPECT_LT(ticketOf(*many).encode().size(), 150U);
  Indices scattered;
  for (std::uint32_t i = 0; i < 1000; ++i) scattered.push_back(i * 7919 % 1'000'000);
  EXPECT_LT(ticketOf(takenBlocks({*many, scattered})->blocks).encode().size(), 10'000U);
}

TEST(LeaseTicket, OfBadSelectionsIsRefused) {
  const auto blocks = *Blocks::strided({.base = 4096, .bytes = 64, .count = 4});
  for (const Selection& bad : {Selection{blocks, {4}}, Selection{blocks, {1, 2, 1}}, Selection{}}) {
    const auto taken = takenBlocks(bad);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code, Code::kInvalid);
    EXPECT_FALSE(taken.error().remedy.empty());
  }
}

TEST(LeaseTicket, IsRefusedIfAnyByteIsLostOrChanged) {
  const auto blocks = *Blocks::list(std::vector<Extent>{{900, 100}, {100, 7}, {200, 100}});
  const base::Bytes good = ticketOf(blocks).encode();
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(LeaseTicket::decode(std::span(good).first(size))) << size;
  for (std::size_t at = 0; at < good.size(); ++at) {
    base::Bytes changed = good;
    changed[at] ^= std::byte{1};
    EXPECT_FALSE(LeaseTicket::decode(changed)) << at;
  }
}

// Tickets in the right form, whose blocks are impossible.
TEST(LeaseTicket, WithImpossibleBlocksIsRefused) {
  const auto first = *Blocks::strided({.base = 4096, .bytes = 64, .count = 1});
  const base::Bytes good = ticketOf(first).encode();
  const std::size_t body = 16, tail = 8, runs = 5;  // one run: count, base (2), bytes, count
  const auto with = [&](std::vector<std::uint8_t> numbers) {
    base::Writer out;
    out.raw(std::span(good).first(12));
    out.put(static_cast<std::uint32_t>(good.size() - body - tail - runs + numbers.size()));
    out.raw(std::span(good).subspan(body, good.size() - body - tail - runs));
    for (const std::uint8_t number : numbers) out.put(number);
    out.put(base::Checksum().add(out.bytes()).value());
    return LeaseTicket::decode(out.bytes());
  };
  ASSERT_TRUE(with({1, 16, 8, 1}));
  EXPECT_FALSE(with({0})) << "no blocks";
  EXPECT_FALSE(with({2, 16, 8, 1})) << "a run is missing";
  EXPECT_FALSE(with({1, 16, 0, 1})) << "an empty block";
  EXPECT_FALSE(with({1, 16, 8, 0})) << "no blocks in the run";
  EXPECT_FALSE(with({1, 16, 8, 2, 4})) << "blocks that overlap";
  EXPECT_FALSE(with({2, 16, 8, 1, 1, 8, 1})) << "runs that overlap";
  EXPECT_FALSE(with({1, 1, 8, 1})) << "before the first address";
  EXPECT_FALSE(with({1, 16, 8, 0x81, 0x80, 0x80, 0x80, 0x04, 8})) << "too many blocks";
}

}  // namespace
}  // namespace viaduct::agent
