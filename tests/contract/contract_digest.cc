// The contract: a checked read returns the bytes that the peer has digested, or names the blocks
// that have other bytes.
#include <atomic>
#include <string>

#include "contract/backend_contract.h"

namespace viaduct::testing {
namespace {

constexpr std::uint64_t kBlockBytes = 5000, kBlockStride = 8192, kBlockCount = 100;

}  // namespace

TEST_P(BackendContract, AReadWithTheRightDigestsEndsWell) {
  const auto here = allocateAtA(kBlockStride * kBlockCount);
  const auto there = allocateAtB(kBlockStride * kBlockCount, {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  const Selection from = blocks(*there, kBlockBytes, kBlockStride, kBlockCount, {7, 99, 0, 50, 51});
  const Selection into = blocks(*here, kBlockBytes, kBlockStride, kBlockCount, {3, 2, 1, 70, 71});
  auto transfer = plan(OpKind::kRead, into, from);
  ASSERT_TRUE(transfer) << transfer.error().text();
  for (std::uint64_t salt = 1; salt <= 3; ++salt) {
    fill(*there, salt);
    const auto digests = b_->digestBlocks(from);
    ASSERT_TRUE(digests) << digests.error().text();
    ASSERT_TRUE(transfer->post({.digests = *digests}));
    const auto done = transfer->wait(60s);
    ASSERT_TRUE(done) << done.error().text();
    EXPECT_TRUE(transfer->end().corrupt.empty());
    const auto checked = a_->checkBlocks(into, *digests);
    EXPECT_TRUE(checked) << checked.error().text();
  }
}

TEST_P(BackendContract, AReadNamesTheBlocksThatChangedAfterTheirDigests) {
  const auto here = allocateAtA(kBlockStride * kBlockCount, {.label = "cache"});
  const auto there = allocateAtB(kBlockStride * kBlockCount, {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  const Selection from = blocks(*there, kBlockBytes, kBlockStride, kBlockCount);
  const Selection into = blocks(*here, kBlockBytes, kBlockStride, kBlockCount);
  fill(*there, 1);
  const auto digests = b_->digestBlocks(from);
  ASSERT_TRUE(digests) << digests.error().text();
  fill(*there, 2, {.offset = 31 * kBlockStride + kBlockBytes - 1, .bytes = 1});  // the last byte
  fill(*there, 2, {.offset = 77 * kBlockStride, .bytes = kBlockStride});
  auto transfer = plan(OpKind::kRead, into, from);
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post(
      {.note = std::as_bytes(std::span(std::string_view("done"))), .digests = *digests}));
  const auto done = transfer->wait(60s);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kCorrupt);
  const std::string text = done.error().text();
  EXPECT_NE(text.find("block 31 (5000 bytes at "), std::string::npos) << text;
  EXPECT_NE(text.find("in \"cache\") has the digest "), std::string::npos) << text;
  EXPECT_NE(text.find("expected " + (*digests)[31].text() + "; 2 of 100"), std::string::npos);
  EXPECT_EQ(done.error().peer, "b");
  EXPECT_EQ(transfer->end().corrupt, (Indices{31, 77}));
  // The peer learns nothing from a read that has failed.
  EXPECT_FALSE(b_->waitNote(0s));
  // Posts the same plan without digests, and then with the new digests.
  ASSERT_TRUE(transfer->post());
  EXPECT_TRUE(transfer->wait(60s));
  EXPECT_TRUE(transfer->end().corrupt.empty());
  const auto fresh = b_->digestBlocks(from);
  ASSERT_TRUE(fresh);
  ASSERT_TRUE(transfer->post({.digests = *fresh}));
  EXPECT_TRUE(transfer->wait(60s));
}

TEST_P(BackendContract, DigestsThatCannotBeCheckedAreRefused) {
  const auto here = allocateAtA(kBlockStride * kBlockCount);
  const auto there = allocateAtB(kBlockStride * kBlockCount, {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  const Selection mine = blocks(*here, kBlockBytes, kBlockStride, 4);
  const Selection theirs = blocks(*there, kBlockBytes, kBlockStride, 4);
  const std::vector<Digest> four(4), five(5);
  auto write = plan(OpKind::kWrite, mine, theirs);
  auto read = plan(OpKind::kRead, mine, theirs);
  ASSERT_TRUE(write && read);
  const auto to_write = write->post({.digests = four}), too_many = read->post({.digests = five});
  ASSERT_FALSE(to_write || too_many);
  EXPECT_EQ(to_write.error().code, Code::kInvalid);
  EXPECT_EQ(too_many.error().code, Code::kInvalid);
  EXPECT_EQ(too_many.error().detail, "5 digests for 4 blocks");
  const auto not_pinned =
      a_->digestBlocks({.blocks = *Blocks::strided({.base = 4096, .bytes = 4096, .count = 1})});
  ASSERT_FALSE(not_pinned);
  EXPECT_EQ(not_pinned.error().code, Code::kDenied);
}

// Nobody waits or polls: the progress thread checks the blocks.
TEST_P(BackendContract, ACheckedReadEndsByItself) {
  const auto here = allocateAtA(4 << 20);
  const auto there = allocateAtB(4 << 20, {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  fill(*there, 1);
  const auto digests = b_->digestBlocks(whole(*there));
  ASSERT_TRUE(digests);
  std::atomic<int> ended = 0;
  const auto on_end = [&](const TransferEnd& end) {
    ended = end.state == TransferState::kDone ? 1 : 2;
    ended.notify_all();
  };
  auto transfer = plan(OpKind::kRead, whole(*here), whole(*there), {.on_end = on_end});
  ASSERT_TRUE(transfer);
  ASSERT_TRUE(transfer->post({.digests = *digests}));
  ended.wait(0);
  EXPECT_EQ(ended, 1);
}

TEST_P(BackendContract, TheReceiverOfAWriteChecksItsBlocks) {
  const auto here = allocateAtA(kBlockStride * kBlockCount);
  const auto there = allocateAtB(kBlockStride * kBlockCount, {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  const Selection from = blocks(*here, kBlockBytes, kBlockStride, kBlockCount, {4, 5, 6});
  const Selection into = blocks(*there, kBlockBytes, kBlockStride, kBlockCount, {8, 7, 9});
  fill(*here, 1);
  const auto digests = a_->digestBlocks(from);
  ASSERT_TRUE(digests) << digests.error().text();
  auto transfer = plan(OpKind::kWrite, from, into);
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post({.note = encodeDigests(*digests)}));
  const auto done = transfer->wait(60s);
  ASSERT_TRUE(done) << done.error().text();
  const auto note = b_->waitNote(60s);
  ASSERT_TRUE(note) << note.error().text();
  const auto expected = decodeDigests(note->bytes);
  ASSERT_TRUE(expected) << expected.error().text();
  const auto checked = b_->checkBlocks(into, *expected);
  EXPECT_TRUE(checked) << checked.error().text();
  fill(*there, 2, {.offset = 7 * kBlockStride + 8, .bytes = 8});
  const auto corrupt = b_->checkBlocks(into, *expected);
  ASSERT_FALSE(corrupt);
  EXPECT_EQ(corrupt.error().code, Code::kCorrupt);
  EXPECT_NE(corrupt.error().detail.find("block 1 (5000 bytes at "), std::string::npos)
      << corrupt.error().text();
}

}  // namespace viaduct::testing
