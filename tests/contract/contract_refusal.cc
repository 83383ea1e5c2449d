// The contract: a post that is refused moves no byte, and leaves the transfer as it was.
#include <string>

#include "contract/backend_contract.h"

namespace viaduct::testing {
namespace {

constexpr std::uint64_t kPage = 4096, kRefusedBytes = 48 * kPage;

// Aligns memory to whole pages. A backend may register pages with a GPU, which then refuses the
// test's own copies that cross the end of a registered page.
Segment inWholePages(Segment memory) {
  if (memory.kind == MemoryKind::kHost)
    memory.address = (memory.address + kPage - 1) / kPage * kPage;
  memory.bytes = kRefusedBytes;
  return memory;
}

// The transfers of a test, from memory that holds the salt 1 into memory that holds the salt 2.
class RefusalContract : public BackendContract {
 protected:
  void SetUp() override {
    BackendContract::SetUp();
    if (IsSkipped() || HasFailure()) return;
    here_memory_ = inWholePages(plainAtA(kRefusedBytes + kPage));
    there_memory_ = inWholePages(plainAtB(kRefusedBytes + kPage));
    here_.emplace(*a_->pin(here_memory_, "here"));
    there_.emplace(*b_->pin(there_memory_, "there"));
    waitForPin(*b_at_a_, "there");
  }

  const Pin& from(OpKind kind) const { return kind == OpKind::kWrite ? *here_ : *there_; }
  const Pin& into(OpKind kind) const { return kind == OpKind::kWrite ? *there_ : *here_; }
  void fillBoth(OpKind kind) {
    comeBehindTheAgents();
    fill(from(kind), 1);
    fill(into(kind), 2);
  }

  void expectRefused(Transfer& transfer, OpKind kind, const PostOptions& options, Code code,
                     const std::string& what) {
    fillBoth(kind);
    const auto before = transfer.state();
    const Status posted = transfer.post(options);
    ASSERT_FALSE(posted) << what;
    EXPECT_EQ(posted.error().code, code) << what << ": " << posted.error().text();
    EXPECT_EQ(transfer.state(), before) << what;
    // A later note gives late bytes the time to arrive.
    if (b_at_a_->state() == PeerState::kReady) {
      ASSERT_TRUE(b_at_a_->note("ping"));
      ASSERT_TRUE(b_->waitNote(60s));
    }
    comeBehindTheAgents();
    EXPECT_TRUE(holds(into(kind), 2)) << what << ": a refused post has moved bytes";
  }
  void expectUsable(Transfer& transfer, OpKind kind) {
    fillBoth(kind);
    const Status posted = transfer.post();
    ASSERT_TRUE(posted) << posted.error().text();
    const Status done = transfer.wait(60s);
    ASSERT_TRUE(done) << done.error().text();
    comeBehindTheAgents();
    EXPECT_TRUE(holds(into(kind), 1));
  }

  Segment here_memory_, there_memory_;
  std::optional<Pin> here_, there_;
};

TEST_P(RefusalContract, WrongOptionsMoveNothing) {
  const auto ended = a_->openMarks(*b_at_a_, {.number = 7, .marks = 1});
  ASSERT_TRUE(ended) << ended.error().text();
  ended->end({.code = Code::kCancelled, .operation = "stream", .detail = "not needed"});
  const std::vector<std::byte> long_note(kMaxNoteBytes + 1);
  const std::vector<Digest> digests(2);
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
    auto transfer = plan(kind, whole(*here_), whole(*there_));
    ASSERT_TRUE(transfer) << transfer.error().text();
    for (int round = 0; round < 2; ++round) {  // before and after a post that ends well
      expectRefused(*transfer, kind, {.mark = Mark{.stream = 7, .number = 0}}, Code::kCancelled,
                    "a mark of an ended stream");
      expectRefused(*transfer, kind, {.mark = Mark{.stream = 8, .number = kMaxMarks}},
                    Code::kInvalid, "a mark beyond the limit");
      expectRefused(*transfer, kind, {.note = long_note}, Code::kInvalid, "a long note");
      expectRefused(*transfer, kind, {.digests = digests}, Code::kInvalid, "wrong digests");
      expectUsable(*transfer, kind);
    }
  }
}

TEST_P(RefusalContract, ALeaseThatHasEndedMovesNothing) {
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
    auto lease = b_->lease(*a_at_b_, whole(*there_), {.access = MemoryAccess::kReadWrite});
    ASSERT_TRUE(lease) << lease.error().text();
    auto borrowed = a_->borrow(*b_at_a_, lease->ticket());
    ASSERT_TRUE(borrowed) << borrowed.error().text();
    TransferOptions options;
    if (onGpus()) options.require = "backend:" + backend();
    auto transfer = a_->plan(kind, *borrowed, whole(*here_), {}, options);
    ASSERT_TRUE(transfer) << transfer.error().text();
    expectUsable(*transfer, kind);
    ASSERT_TRUE(lease->revoke());
    expectRefused(*transfer, kind, {}, Code::kStale, "a lease that was revoked");
  }
}

TEST_P(RefusalContract, WithdrawnMemoryAndAClosedPeerMoveNothing) {
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
    auto transfer = plan(kind, whole(*here_), whole(*there_));
    ASSERT_TRUE(transfer) << transfer.error().text();
    ASSERT_TRUE(here_->release());
    expectRefused(*transfer, kind, {}, Code::kDenied, "memory withdrawn here");
    here_.emplace(*a_->pin(here_memory_, "here"));
    expectUsable(*transfer, kind);
    ASSERT_TRUE(there_->release());
    ASSERT_TRUE(a_at_b_->note("withdrawn"));
    ASSERT_TRUE(a_->waitNote(60s));
    expectRefused(*transfer, kind, {}, Code::kDenied, "memory withdrawn there");
    there_.emplace(*b_->pin(there_memory_, opKindName(kind)));
    waitForPin(*b_at_a_, opKindName(kind));
    expectUsable(*transfer, kind);
  }
  auto transfer = plan(OpKind::kWrite, whole(*here_), whole(*there_));
  ASSERT_TRUE(transfer) << transfer.error().text();
  b_->close();
  while (b_at_a_->state() == PeerState::kReady) a_->poll();
  expectRefused(*transfer, OpKind::kWrite, {}, Code::kPeerLost, "a closed peer");
}

VIADUCT_INSTANTIATE_CONTRACT(RefusalContract);

}  // namespace
}  // namespace viaduct::testing
