// A peer punches, truncates, seals and frees all that is shared, and takes all huge pages, while
// the other process copies. That process must end by itself, and not by SIGBUS or SIGSEGV.
// VIADUCT_ATTACK_ROUNDS sets the number of rounds.
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "backends/local/own_memory_testing.h"
#include "support/huge_pages.h"

namespace viaduct::local::testing {
namespace {

using viaduct::testing::HugePages;

constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20U;
constexpr unsigned kHuge2Mb = MFD_HUGETLB | 21U << 26U;
constexpr int kSealFutureWrite = 0x10;  // F_SEAL_FUTURE_WRITE, which old C libraries lack
constexpr std::uint32_t kForgedFile = 900;
constexpr int kAttacks = 20;

int rounds() {
  const char* const given = std::getenv("VIADUCT_ATTACK_ROUNDS");
  return given != nullptr ? std::atoi(given) : 1;
}

// kSealedHuge: nobody can punch holes into the file, but it is sparse. Pages beyond its end make
// the count of its pages look complete.
enum class Kind : std::uint8_t { kSmall, kHuge, kSealedHuge, kPlain };

std::string nameOf(const ::testing::TestParamInfo<Kind>& kind) {
  constexpr std::array names{"small", "huge", "sealed_huge", "plain"};
  return names[static_cast<std::size_t>(kind.param)];
}

bool isHuge(Kind kind) { return kind == Kind::kHuge || kind == Kind::kSealedHuge; }

// Memory that its owner shares with peers, even if the file allows attacks.
class Shared {
 public:
  explicit Shared(Kind kind) {
    if (kind != Kind::kPlain)
      file.reset(::memfd_create("attacked",
                                MFD_CLOEXEC | MFD_ALLOW_SEALING | (isHuge(kind) ? kHuge2Mb : 0U)));
    if (file && ::ftruncate(file.get(), kBytes) != 0) return;
    void* start = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                         MAP_SHARED | (file ? 0 : MAP_ANONYMOUS), file.get(), 0);
    if (start == MAP_FAILED) return;
    bytes = {static_cast<std::byte*>(start), kBytes};
    if (kind == Kind::kSealedHuge) ::fallocate(file.get(), FALLOC_FL_KEEP_SIZE, kBytes, kBytes);
    ::fcntl(file.get(), F_ADD_SEALS,
            F_SEAL_SHRINK | (kind == Kind::kSealedHuge ? kSealFutureWrite : 0));
  }
  ~Shared() { unmap(); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  Segment segment() const {
    Segment segment = Segment::host(bytes.data(), bytes.size());
    segment.fd = file.get();
    segment.share_file = static_cast<bool>(file);
    return segment;
  }
  void unmap() {
    if (!bytes.empty()) ::munmap(bytes.data(), bytes.size());
    bytes = {};
  }

  base::Fd file;
  std::span<std::byte> bytes;  // empty if it could not be made
};

// Takes each huge page that is free, until it is destroyed.
class PoolThief {
 public:
  PoolThief() : file_(::memfd_create("thief", MFD_CLOEXEC | kHuge2Mb)) { take(); }
  void take() {
    while (::fallocate(file_.get(), 0, static_cast<off_t>(taken_ * kHugePage), kHugePage) == 0)
      ++taken_;
  }

 private:
  base::Fd file_;
  std::uint64_t taken_ = 0;
};

// Tries everything that a holder of the descriptor can do to the file. Most attempts fail with most
// files. A page has to exist before it is punched out: the kernel keeps a huge page in reserve for
// a hole that never had one.
void attack(int file, int times) {
  struct stat facts{};
  if (::fstat(file, &facts) != 0 || facts.st_size == 0) return;
  const auto bytes = static_cast<std::size_t>(facts.st_size);
  void* start = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (start != MAP_FAILED) {
    ::madvise(start, bytes, MADV_POPULATE_WRITE);
    if (times % 2 == 0) ::madvise(start, bytes, MADV_REMOVE);
    ::munmap(start, bytes);
  }
  ::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, facts.st_size);
  static_cast<void>(::ftruncate(file, 0));
  static_cast<void>(::ftruncate(file, facts.st_size));
  if (times == kAttacks / 2)
    for (const int one : {F_SEAL_WRITE, kSealFutureWrite, F_SEAL_GROW, F_SEAL_SEAL})
      ::fcntl(file, F_ADD_SEALS, one);
}

// Copies both ways until it is told to end. Whether that succeeds is up to the peer.
bool copyUntilEnd(int socket, int pid) {
  Station station(socket, pid, settings());
  Memory memory(false);
  if (!station.backend().pin(kHere, memory.segment()) || !station.ready()) return false;
  if (!station.run(
          [&] { return station.link().reaches(OpKind::kWrite, kHere, kThere).has_value(); }))
    return false;
  const auto ops = whole(memory.bytes(), station.pins.front().info.address, kHugePage / 8);
  bool told = false;
  for (int times = 0; !told; ++times) {
    station.move(times % 2 == 0 ? OpKind::kWrite : OpKind::kRead, ops);
    if (times == 1) station.say("copying");
    station.turn();
    told = !station.said.empty();
  }
  return true;
}

// Uses its own memory until it is told to end.
bool useOwnUntilEnd(int socket, int pid, Kind kind) {
  Station station(socket, pid, settings());
  const Shared pinned(kind);
  const auto own = SharedMemory::allocate(kBytes, {.huge_pages = isHuge(kind)});
  if (pinned.bytes.empty() || !own) return false;
  std::memset(pinned.bytes.data(), 1, kBytes);
  station.pin(kHere, pinned.segment());
  station.pin(kThere, own->segment());
  station.say("shared");
  while (station.said.empty()) {
    for (const auto bytes : {pinned.bytes, own->bytes()}) {
      std::memset(bytes.data(), 3, bytes.size());
      static_cast<void>(std::memchr(bytes.data(), 5, bytes.size()));
    }
    station.turn();
  }
  return station.unpin(kHere) && station.unpin(kThere);
}

class LocalAttack : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (!isHuge(GetParam())) return;
    pages_.emplace();
    if (!HugePages::enough()) GTEST_SKIP() << "skipped: no free 2 MiB pages";
  }
  std::optional<HugePages> pages_;
};
INSTANTIATE_TEST_SUITE_P(Local, LocalAttack,
                         ::testing::Values(Kind::kSmall, Kind::kHuge, Kind::kSealedHuge,
                                           Kind::kPlain),
                         nameOf);

// The attacker offers the memory by hand, because its own backend may refuse to.
TEST_P(LocalAttack, AnInitiatorOutlivesTheOwner) {
  for (int round = 0; round < rounds(); ++round) {
    Child child(copyUntilEnd);
    Station station(child.socket(), child.pid(), settings());
    Shared memory(GetParam());
    ASSERT_FALSE(memory.bytes.empty());
    ASSERT_TRUE(station.ready());
    PinKey key = *decodeKey(*station.backend().pin(kThere, memory.segment()));
    if (memory.file) {
      key.in_file = true;
      key.file = kForgedFile;
      ASSERT_TRUE(
          station.send(encode(FileOffer{kForgedFile, kBytes}), std::array{memory.file.get()}));
    }
    station.announce(kThere, memory.segment(), encodeKey(key));
    ASSERT_TRUE(station.hears("copying"));
    std::optional<PoolThief> thief;
    if (isHuge(GetParam())) thief.emplace();
    for (int times = 0; times < kAttacks; ++times) {
      if (memory.file) attack(memory.file.get(), times);
      if (times == kAttacks - 1) memory.unmap();
      if (thief) thief->take();
    }
    station.say("end");
    ASSERT_EQ(child.exitCode(), 0) << "round " << round;
  }
}

TEST_P(LocalAttack, AnOwnerOutlivesItsPeer) {
  for (int round = 0; round < rounds(); ++round) {
    Child child(
        [kind = GetParam()](int socket, int pid) { return useOwnUntilEnd(socket, pid, kind); });
    Station station(child.socket(), child.pid(), settings(), true);
    ASSERT_TRUE(station.hears("shared"));
    std::optional<PoolThief> thief;
    if (isHuge(GetParam())) thief.emplace();
    for (int times = 0; times < kAttacks; ++times) {
      for (const auto& letter : station.letters)
        for (const base::Fd& file : letter.second) attack(file.get(), times);
      if (thief) thief->take();
    }
    station.say("end");
    ASSERT_EQ(child.exitCode(), 0) << "round " << round;
  }
}

}  // namespace
}  // namespace viaduct::local::testing
