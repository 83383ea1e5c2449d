// The contract: memory is used only as its owner may use it.
#include <sys/mman.h>

#include "contract/backend_contract.h"

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
  std::span<const std::byte> bytes() const { return {start_, kBytes}; }

 private:
  std::byte* const start_;
};

bool isAll(std::span<const std::byte> bytes, int value) {
  return bytes[0] == static_cast<std::byte>(value) &&
         std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

}  // namespace

TEST_P(BackendContract, ReadOnlyMemoryIsReadAndNeverWritten) {
  const Pages mine(PROT_READ), theirs(PROT_READ);
  const auto here = a_->allocate(Pages::kBytes), here_fixed = a_->pin(mine.segment());
  const auto there = b_->allocate(Pages::kBytes, {.label = "there"});
  const auto there_fixed = b_->pin(theirs.segment(), "fixed");
  ASSERT_TRUE(here && there && here_fixed && there_fixed);
  waitForPin(*b_at_a_, "fixed");
  EXPECT_EQ(b_at_a_->waitPin("fixed", 60s)->access, MemoryAccess::kReadOnly);
  EXPECT_EQ(b_at_a_->waitPin("there", 60s)->access, MemoryAccess::kReadWrite);
  const auto refused = [&](OpKind kind, const Pin& local, const Pin& remote) {
    const auto plan = a_->plan(kind, *b_at_a_, whole(local), whole(remote));
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, Code::kDenied) << plan.error().text();
    EXPECT_NE(plan.error().text().find("read-only"), std::string::npos) << plan.error().text();
  };
  refused(OpKind::kWrite, *here, *there_fixed);
  refused(OpKind::kRead, *here_fixed, *there);
  const auto moves = [&](OpKind kind, const Pin& local, const Pin& remote) {
    auto transfer = a_->plan(kind, *b_at_a_, whole(local), whole(remote));
    ASSERT_TRUE(transfer) << transfer.error().text();
    ASSERT_TRUE(transfer->post());
    const auto done = transfer->wait(60s);
    EXPECT_TRUE(done) << done.error().text();
  };
  moves(OpKind::kRead, *here, *there_fixed);
  EXPECT_TRUE(isAll(here->bytes(), 0x3c));
  moves(OpKind::kWrite, *here_fixed, *there);
  EXPECT_TRUE(isAll(there->bytes(), 0x3c));
}

// The owner could write there, but lets no peer write.
TEST_P(BackendContract, MemoryIsReadOnlyForPeersWhereItsOwnerSaysSo) {
  const Pages theirs(PROT_READ | PROT_WRITE);
  Segment segment = theirs.segment();
  segment.access = MemoryAccess::kReadOnly;
  const auto here = a_->allocate(Pages::kBytes);
  const auto there = b_->pin(segment, "weights");
  ASSERT_TRUE(here && there);
  EXPECT_EQ(there->info().access, MemoryAccess::kReadOnly);
  waitForPin(*b_at_a_, "weights");
  EXPECT_FALSE(a_->plan(OpKind::kWrite, *b_at_a_, whole(*here), whole(*there)));
  EXPECT_TRUE(a_->plan(OpKind::kRead, *b_at_a_, whole(*here), whole(*there)));
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
