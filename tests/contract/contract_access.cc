// The contract: memory is used only as its owner may use it.
#include <sys/mman.h>

#include "contract/backend_contract.h"
#include "support/bytes.h"

namespace viaduct::testing {
namespace {

// Pages with contents and a protection.
class Pages {
 public:
  static constexpr std::size_t kBytes = std::size_t{256} << 10U;

  explicit Pages(int protection)
      : start_(static_cast<std::byte*>(
            ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    std::memset(start_, 0x3c, kBytes);
    EXPECT_EQ(::mprotect(start_, kBytes, protection), 0);
  }
  ~Pages() { ::munmap(start_, kBytes); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  Segment segment() const { return Segment::host(start_, kBytes); }

 private:
  std::byte* const start_;
};

}  // namespace

TEST_P(BackendContract, ReadOnlyMemoryIsReadAndNeverWritten) {
  const Pages mine(PROT_READ), theirs(PROT_READ);
  const auto here = allocateAtA(Pages::kBytes), here_fixed = a_->pin(mine.segment());
  const auto there = allocateAtB(Pages::kBytes, {.label = "there"});
  const auto there_fixed = b_->pin(theirs.segment(), "fixed");
  ASSERT_TRUE(here && there);
  ASSERT_TRUE(here_fixed) << here_fixed.error().text();
  ASSERT_TRUE(there_fixed) << there_fixed.error().text();
  waitForPin(*b_at_a_, "fixed");
  EXPECT_EQ(b_at_a_->waitPin("fixed", 60s)->access, MemoryAccess::kReadOnly);
  EXPECT_EQ(b_at_a_->waitPin("there", 60s)->access, MemoryAccess::kReadWrite);
  const auto refused = [&](OpKind kind, const Pin& local, const Pin& remote) {
    const auto planned = plan(kind, whole(local), whole(remote));
    ASSERT_FALSE(planned);
    EXPECT_EQ(planned.error().code, Code::kDenied) << planned.error().text();
    EXPECT_NE(planned.error().text().find("read-only"), std::string::npos)
        << planned.error().text();
  };
  refused(OpKind::kWrite, *here, *there_fixed);
  refused(OpKind::kRead, *here_fixed, *there);
  const auto moves = [&](OpKind kind, const Pin& local, const Pin& remote) {
    auto transfer = plan(kind, whole(local), whole(remote));
    ASSERT_TRUE(transfer) << transfer.error().text();
    ASSERT_TRUE(transfer->post());
    const auto done = transfer->wait(60s);
    EXPECT_TRUE(done) << done.error().text();
  };
  moves(OpKind::kRead, *here, *there_fixed);
  EXPECT_TRUE(allAre(contents(*here).bytes(), std::byte{0x3c}));
  moves(OpKind::kWrite, *here_fixed, *there);
  EXPECT_TRUE(allAre(contents(*there).bytes(), std::byte{0x3c}));
}

// The owner itself may write to this memory, but lets no peer write.
TEST_P(BackendContract, MemoryIsReadOnlyForPeersWhereItsOwnerSaysSo) {
  Segment segment = plainAtB(Pages::kBytes);
  segment.access = MemoryAccess::kReadOnly;
  const auto here = allocateAtA(Pages::kBytes);
  const auto there = b_->pin(segment, "weights");
  ASSERT_TRUE(here && there);
  EXPECT_EQ(there->info().access, MemoryAccess::kReadOnly);
  waitForPin(*b_at_a_, "weights");
  EXPECT_FALSE(plan(OpKind::kWrite, whole(*here), whole(*there)));
  EXPECT_TRUE(plan(OpKind::kRead, whole(*here), whole(*there)));
}

TEST_P(BackendContract, MemoryThatCannotBeReadIsNotPinned) {
  const Pages pages(PROT_NONE);
  const auto pin = b_->pin(pages.segment());
  ASSERT_FALSE(pin);
  EXPECT_EQ(pin.error().code, Code::kInvalid) << pin.error().text();
  Segment beyond = pages.segment();
  ::munmap(reinterpret_cast<void*>(beyond.address), beyond.bytes);
  EXPECT_FALSE(b_->pin(beyond));
}

}  // namespace viaduct::testing
