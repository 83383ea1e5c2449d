// Pieces over an engine that injects short reads and writes, errors, and any order of their ends.
#include "backends/file/pieces.h"

#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

#include "base/random.h"
#include "support/bytes.h"
#include "support/temporary_folder.h"

namespace viaduct::file {
namespace {

struct Faults {
  double shorter = 0, interrupted = 0;
  std::uint64_t bad_offset = ~std::uint64_t{0};  // fails with `error`
  int error = EIO;
  bool ends_early = false;  // cancel() ends an I/O at once
};

class FaultyEngine final : public Engine {
 public:
  FaultyEngine(std::uint64_t seed, std::uint32_t block, Faults faults)
      : random_(seed), block_(block), faults_(faults) {}
  std::string_view name() const override { return "faulty"; }
  void start(std::uint32_t token, const Io& io) override { queue_.push_back({token, io}); }
  void cancel(std::uint32_t token) override {
    if (!faults_.ends_early) return;
    std::erase_if(queue_, [&](const auto& one) {
      if (one.first == token) ended_.push_back({token, -ECANCELED});
      return one.first == token;
    });
  }
  std::vector<int> fds() const override { return {}; }
  void call(std::uint32_t token, std::function<int()> call) override {
    const int result = call();
    if (token != kNoToken) ended_.push_back({token, result});
  }
  bool submit() override {
    may_end_ = true;
    return true;
  }
  // Ends one random I/O of those in flight, after each submit().
  bool next(EndedIo& ended) override {
    if (!ended_.empty()) {
      ended = ended_.back();
      ended_.pop_back();
      return true;
    }
    if (queue_.empty() || !std::exchange(may_end_, false)) return false;
    const std::size_t at = random_.below(queue_.size());
    const auto [token, io] = queue_[at];
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(at));
    ended = {token, perform(io)};
    return true;
  }
  std::size_t queued() const { return queue_.size(); }

 private:
  int perform(Io io) {
    if (random_.chance(faults_.interrupted)) return -EINTR;
    if (io.offset <= faults_.bad_offset && faults_.bad_offset < io.offset + io.bytes)
      return -faults_.error;
    if (random_.chance(faults_.shorter))
      io.bytes = static_cast<std::uint32_t>(random_.below(io.bytes / block_ + 1) * block_);
    if (io.bytes == 0) return -EINTR;
    const auto offset = static_cast<off_t>(io.offset);
    const ssize_t moved = io.write ? ::pwrite(io.fd, io.memory, io.bytes, offset)
                                   : ::pread(io.fd, io.memory, io.bytes, offset);
    return moved < 0 ? -errno : static_cast<int>(moved);
  }

  base::Random random_;
  const std::uint32_t block_;
  const Faults faults_;
  std::vector<std::pair<std::uint32_t, Io>> queue_;
  std::vector<EndedIo> ended_;
  bool may_end_ = false;
};

class PiecesTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = 300'001;

  // Makes a file of kBytes random bytes, pinned whole. Its rules are those of a block of 512 bytes,
  // although the engine uses the page cache.
  void open(Faults faults, std::uint64_t seed, std::uint32_t depth = 8) {
    const std::string path = folder_.path() + "/data";
    model_.resize(kBytes);
    base::Random random(seed);
    for (auto& byte : model_) byte = static_cast<std::byte>(random.next());
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(model_.data()), kBytes);
    auto segment = openFile(Segment::file(path), Toggle::kOff);
    ASSERT_TRUE(segment) << segment.error().text();
    auto file = std::const_pointer_cast<OpenedFile>(
        std::static_pointer_cast<const OpenedFile>(segment->opened));
    rules_ = {.direct = true, .offset = 512, .memory = 64};
    file->alignment = {.direct = false};  // for reopen()
    file_target_ = {.address = 0, .bytes = kBytes, .file = file, .writable = true};
    memory_.assign(kBytes + 64, std::byte{});
    host_target_ = {.address = reinterpret_cast<std::uintptr_t>(memory_.data()),
                    .bytes = memory_.size(),
                    .writable = true};
    auto engine = std::make_unique<FaultyEngine>(seed, 512, faults);
    engine_ = engine.get();
    pieces_ = std::make_unique<Pieces>(std::move(engine),
                                       Pieces::Limits{.depth = depth, .open_files = 2});
    file_ = file;
  }
  // Opens the file without O_DIRECT, and then applies the rules of O_DIRECT to all pieces.
  void applyRules() {
    auto entered =
        FilePiece{.job = job(0), .host = &host_target_, .file = &file_target_, .bytes = 1};
    entered.address = host_target_.address;
    pieces_->add(entered);
    finishAll();
    file_->alignment = rules_;
    finished_.clear();
  }
  move::Job* job(std::uint64_t number) {
    move::Job& job = jobs_[number];
    job.number = number;
    return &job;
  }
  // Moves the bytes of an op in pieces.
  void move(bool write, std::uint64_t address, std::uint64_t offset, std::uint64_t bytes,
            std::uint64_t number) {
    while (bytes != 0) {
      const Cut cut = nextCut(address, offset, bytes, file_->alignment);
      while (pieces_->room() == 0) progress();
      pieces_->add({.job = job(number),
                    .write = write,
                    .bounces = cut.bounces,
                    .host = &host_target_,
                    .file = &file_target_,
                    .address = address,
                    .offset = offset,
                    .bytes = cut.bytes});
      address += cut.bytes;
      offset += cut.bytes;
      bytes -= cut.bytes;
    }
  }
  void finishAll() {
    while (!pieces_->empty()) progress();
    progress();
  }
  void progress() {
    pieces_->submit();
    pieces_->reap(finished_);
  }
  std::vector<std::byte> content() const {
    std::ifstream in(folder_.path() + "/data", std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    std::vector<std::byte> out(text.size());
    std::memcpy(out.data(), text.data(), text.size());
    return out;
  }
  const Error* firstError() const {
    for (const auto& one : finished_)
      if (one.why) return one.why.get();
    return nullptr;
  }

  testing::TemporaryFolder folder_;
  std::vector<std::byte> model_, memory_;
  std::map<std::uint64_t, move::Job> jobs_;  // by number
  Alignment rules_;
  std::shared_ptr<OpenedFile> file_;
  FileTarget file_target_, host_target_;
  FaultyEngine* engine_ = nullptr;
  std::unique_ptr<Pieces> pieces_;
  std::vector<Pieces::FinishedPiece> finished_;
};

// Neighbouring ops share blocks, and all of them are in flight at once.
TEST_F(PiecesTest, WritesOfAnyAlignmentChangeTheirBytesOnly) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    open({.shorter = 0.2, .interrupted = 0.1}, seed);
    applyRules();
    base::Random random(seed);
    std::uint64_t at = random.below(2000), number = 1;
    while (at < kBytes) {
      const std::uint64_t bytes =
          std::min(kBytes - at, 1 + random.below(random.chance(0.3) ? 20'000 : 700));
      const std::uint64_t from = std::min(random.below(kBytes), memory_.size() - bytes);
      for (std::uint64_t i = 0; i < bytes; ++i)
        if (memory_[from + i] == std::byte{}) memory_[from + i] = std::byte{1};
      if (!random.chance(0.2)) {
        move(true, host_target_.address + from, at, bytes, ++number);
        std::memcpy(model_.data() + at, memory_.data() + from, bytes);
      }
      at += bytes;
    }
    finishAll();
    ASSERT_EQ(firstError(), nullptr) << firstError()->text();
    EXPECT_TRUE(testing::same(content(), model_)) << "seed " << seed;
  }
}

TEST_F(PiecesTest, ReadsOfAnyAlignmentReturnTheBytes) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    open({.shorter = 0.2, .interrupted = 0.1}, seed);
    applyRules();
    base::Random random(seed);
    for (int i = 0; i < 40; ++i) {
      const std::uint64_t bytes = 1 + random.below(random.chance(0.5) ? 100'000 : 1000);
      const std::uint64_t offset =
          random.chance(0.2) ? kBytes - bytes : random.below(kBytes - bytes);
      const std::uint64_t into = random.below(memory_.size() - bytes);
      testing::fillWith(memory_, std::byte{0});
      move(false, host_target_.address + into, offset, bytes, static_cast<std::uint64_t>(i) + 1);
      finishAll();
      ASSERT_EQ(firstError(), nullptr) << firstError()->text();
      EXPECT_TRUE(testing::same(std::span(memory_).subspan(into, bytes),
                                std::span(model_).subspan(offset, bytes)));
      EXPECT_TRUE(testing::allAre(std::span(memory_).first(into), std::byte{0}));
      EXPECT_TRUE(testing::allAre(std::span(memory_).subspan(into + bytes), std::byte{0}));
    }
  }
}

TEST_F(PiecesTest, AnErrorNamesTheOffsetAndTheFile) {
  open({.bad_offset = 100'000}, 3);
  applyRules();
  move(false, host_target_.address, 0, 200'000, 1);
  finishAll();
  ASSERT_NE(firstError(), nullptr);
  const std::string text = firstError()->text();
  EXPECT_EQ(firstError()->code, Code::kDevice) << text;
  EXPECT_EQ(firstError()->os_errno, EIO);
  EXPECT_NE(text.find("/data"), std::string::npos) << text;
  EXPECT_NE(text.find("offset"), std::string::npos) << text;
}

TEST_F(PiecesTest, AnIoThatNeverMakesProgressIsAnError) {
  open({.interrupted = 1.0}, 3);
  pieces_->add({.job = job(1),
                .host = &host_target_,
                .file = &file_target_,
                .address = host_target_.address,
                .bytes = 512});
  finishAll();
  ASSERT_NE(firstError(), nullptr);
}

TEST_F(PiecesTest, CancelledPiecesEnd) {
  open({.ends_early = true}, 3, 4);
  for (std::uint32_t i = 0; i < 4; ++i)
    pieces_->add({.job = job(i % 2),
                  .host = &host_target_,
                  .file = &file_target_,
                  .address = host_target_.address,
                  .bytes = 512});
  pieces_->reap(finished_);  // begins them, because the file is open
  EXPECT_EQ(engine_->queued(), 4U);
  pieces_->cancelJob(*job(1));
  EXPECT_EQ(engine_->queued(), 2U);
  finishAll();
  ASSERT_EQ(finished_.size(), 4U);
  for (const auto& one : finished_) EXPECT_EQ(one.why != nullptr, one.piece.job == job(1));
}

TEST_F(PiecesTest, UnmappedHostMemoryIsAnErrorAndNoSignal) {
  open({}, 3);
  applyRules();
  host_target_.address = 1 << 16U;  // nothing is mapped there
  for (const bool write : {false, true}) {
    finished_.clear();
    pieces_->add({.job = job(2),
                  .write = write,
                  .bounces = true,
                  .host = &host_target_,
                  .file = &file_target_,
                  .address = host_target_.address,
                  .offset = 100,
                  .bytes = 512});
    finishAll();
    ASSERT_NE(firstError(), nullptr);
    EXPECT_EQ(firstError()->code, Code::kDenied) << firstError()->text();
  }
  EXPECT_TRUE(testing::same(content(), model_));
}

}  // namespace
}  // namespace viaduct::file
