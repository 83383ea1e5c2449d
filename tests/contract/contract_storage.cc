// The contract of backends of storage, tested at their rails: an op that a rail takes comes back
// exactly once, whatever happens to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/manual_poller_testing.h"
#include "core/backend.h"
#include "core/sink_testing.h"
#include "object/fake_store.h"
#include "support/link_pair.h"
#include "support/temporary_folder.h"

namespace viaduct::testing {
namespace {

// The place where one backend keeps its bytes.
class Place {
 public:
  virtual ~Place() = default;
  virtual void addTo(Settings& /*settings*/) const {}
  // A segment with the bytes of FakeStore::pattern().
  virtual Segment existing(const std::string& name, std::uint64_t bytes) = 0;
  // A segment that can be written, without useful bytes.
  virtual Segment fresh(const std::string& name, std::uint64_t bytes) = 0;
  // Lets later transfers of a pinned segment fail.
  virtual void damage(const std::string& name) = 0;
  // Whether the segment has the bytes of the pattern.
  virtual bool holdsPattern(const std::string& name, std::uint64_t bytes) = 0;
};

class FilePlace final : public Place {
 public:
  Segment existing(const std::string& name, std::uint64_t bytes) override {
    const auto pattern = FakeStore::pattern(bytes);
    std::ofstream(path(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(pattern.data()), static_cast<std::streamsize>(bytes));
    return Segment::file(path(name));
  }
  Segment fresh(const std::string& name, std::uint64_t bytes) override {
    return Segment::file(path(name), {.bytes = bytes, .create = true});
  }
  void damage(const std::string& name) override { std::filesystem::resize_file(path(name), 0); }
  bool holdsPattern(const std::string& name, std::uint64_t bytes) override {
    std::string text(bytes, '\0');
    std::ifstream(path(name), std::ios::binary)
        .read(text.data(), static_cast<std::streamsize>(bytes));
    return std::memcmp(text.data(), FakeStore::pattern(bytes).data(), bytes) == 0;
  }

 private:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  const TemporaryFolder folder_;
};

class ObjectPlace final : public Place {
 public:
  void addTo(Settings& settings) const override {
    settings.others = store_.others();
    settings.others["VIADUCT_OBJECT_RETRIES"] = "0";
  }
  Segment existing(const std::string& name, std::uint64_t bytes) override {
    store_.tell("put kv " + name + " " + std::to_string(bytes));
    return Segment::object("s3://kv/" + name);
  }
  Segment fresh(const std::string& name, std::uint64_t bytes) override {
    return Segment::object("s3://kv/" + name, {.bytes = bytes, .create = true});
  }
  void damage(const std::string& name) override { store_.tell("put kv " + name + " 1"); }
  bool holdsPattern(const std::string& name, std::uint64_t bytes) override {
    return store_.tell("same kv " + name + " " + std::to_string(bytes)) == "yes";
  }

 private:
  FakeStore store_;
};

struct Kind {
  std::string backend;
  std::unique_ptr<Place> (*place)();
};
const Kind kKinds[] = {
    {"file", []() -> std::unique_ptr<Place> { return std::make_unique<FilePlace>(); }},
    {"object", []() -> std::unique_ptr<Place> { return std::make_unique<ObjectPlace>(); }}};

std::vector<std::string> storageBackends() {
  std::vector<std::string> names;
  for (const auto& entry : core::backendCatalogue())
    if (entry.facts->storage) names.emplace_back(entry.name);
  return names;
}

class StorageContract : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr std::uint64_t kBytes = 1U << 20U, kFirstAddress = std::uint64_t{1} << 62U;
  static constexpr std::uint32_t kHost = 0;  // slot of the host memory

  void SetUp() override {
    const auto* const kind = std::ranges::find(kKinds, GetParam(), &Kind::backend);
    ASSERT_NE(kind, std::end(kKinds)) << "name a place for this backend";
    place_ = kind->place();
    settings_.backends = {GetParam()};
    place_->addTo(settings_);
    const auto catalogue = core::backendCatalogue();
    const auto entry = std::ranges::find(catalogue, GetParam(), &core::BackendEntry::name);
    auto opened = entry->open({settings_, poller_.poller()});
    ASSERT_TRUE(opened) << opened.error().text();
    backend_ = *std::move(opened);
    core::LinkSeed seed;
    seed.epoch = 1;
    seed.self = seed.same_host = true;
    end_.link = backend_->link(std::move(seed), end_);
    ASSERT_TRUE(backend_->pin(kHost, Segment::host(memory_.data(), kBytes)));
  }
  void TearDown() override {
    if (!end_.link) return;
    close();
    EXPECT_TRUE(poller_.run([&] { return end_.link->settled(); }));
  }

  // Pins a segment, and returns its slot.
  std::uint32_t pinned(Segment segment) {
    auto opened = backend_->storage()->open(std::move(segment));
    EXPECT_TRUE(opened) << opened.error().text();
    const std::uint32_t slot = ++slots_;
    opened->address = kFirstAddress + slot * kBytes;
    const auto pin = backend_->pin(slot, *opened);
    EXPECT_TRUE(pin) << pin.error().text();
    return slot;
  }

  // The ops of one slice and what became of them.
  struct Story {
    OpKind kind = OpKind::kRead;
    std::vector<core::Op> ops = {};
    std::uint64_t taken = 0, moved = 0, failed = 0;
    bool isOver() const { return moved + failed == taken; }
  };
  // Posts all of a segment's bytes as 16 ops. Returns false if the rail is busy.
  bool post(std::uint64_t number, std::uint32_t slot, OpKind kind = OpKind::kRead) {
    constexpr std::uint64_t kStep = kBytes / 16;
    Story& story = stories_[number];
    story.kind = kind;
    for (std::uint64_t at = 0; at < kBytes && story.ops.size() < 16; at += kStep)
      story.ops.push_back({.local = reinterpret_cast<std::uintptr_t>(memory_.data()) + at,
                           .remote = kFirstAddress + slot * kBytes + at,
                           .bytes = kStep,
                           .local_pin = kHost,
                           .remote_pin = slot});
    return offer(number);
  }
  bool offer(std::uint64_t number) {
    Story& story = stories_[number];
    story.taken += rail().post({.kind = story.kind,
                                .slice = core::testing::sliceOf(number),
                                .link = end_.link.get(),
                                .ops = std::span(story.ops).subspan(story.taken)});
    return story.taken == story.ops.size();
  }
  // Posts many works, and takes what ends while the rail is busy.
  void postMany(std::uint64_t count, std::uint32_t slot) {
    for (std::uint64_t number = 1; number <= count; ++number)
      if (!post(number, slot)) {
        ASSERT_TRUE(poller_.run([&] {
          poll();
          return offer(number);
        }));
      }
  }

  core::Rail& rail() { return *backend_->rails()[0]; }
  void poll() {
    core::Completions out;
    core::pollAndHandle(rail(), out);
    take(out);
  }
  void take(const core::Completions& out) {
    for (const core::Completion& one : out) {
      if (const auto* moved = std::get_if<core::Moved>(&one))
        stories_[moved->slice.number].moved += moved->ops;
      if (const auto* failed = std::get_if<core::Failed>(&one))
        stories_[failed->slice.number].failed += failed->ops;
    }
    for (const auto& [number, story] : stories_)
      EXPECT_LE(story.moved + story.failed, story.taken)
          << "number " << number << " came back twice";
  }
  bool allOver() const {
    return std::ranges::all_of(stories_, [](const auto& one) { return one.second.isOver(); });
  }
  // Polls until all ops are back, and once more for any that come twice.
  void finish() {
    EXPECT_TRUE(poller_.run([&] {
      poll();
      return allOver();
    }));
    poller_.pollOnce();
    poll();
  }
  void close() {
    core::Completions out;
    end_.link->close(out);
    take(out);
  }
  bool memoryHoldsPattern() const { return memory_ == FakeStore::pattern(kBytes); }

  Settings settings_;
  base::ManualPoller poller_;
  std::vector<std::uint64_t> memory_ = std::vector<std::uint64_t>(kBytes / 8);
  std::map<std::uint64_t, Story> stories_;
  std::unique_ptr<Place> place_;
  std::unique_ptr<core::Backend> backend_;
  LinkEnd end_;
  std::uint32_t slots_ = kHost;
};

TEST_P(StorageContract, ATakenOpComesBackExactlyOnce) {
  postMany(100, pinned(place_->existing("old", kBytes)));
  finish();
  for (const auto& [number, story] : stories_) EXPECT_EQ(story.moved, 16U) << number;
  EXPECT_TRUE(memoryHoldsPattern());
  const std::uint32_t made = pinned(place_->fresh("new", kBytes));
  ASSERT_TRUE(post(200, made, OpKind::kWrite));
  finish();
  EXPECT_EQ(stories_[200].moved, 16U);
  EXPECT_TRUE(place_->holdsPattern("new", kBytes));
}

TEST_P(StorageContract, ACancelledWorkComesBackOnceAndTheOthersGoOn) {
  const std::uint32_t slot = pinned(place_->existing("old", kBytes));
  for (std::uint64_t number = 1; number <= 20; ++number) ASSERT_TRUE(post(number, slot));
  for (std::uint64_t number = 1; number <= 20; number += 2)
    rail().cancel(core::testing::sinkOf(number));
  rail().cancel(core::testing::sinkOf(1000));  // unknown
  finish();
  for (std::uint64_t number = 2; number <= 20; number += 2)
    EXPECT_EQ(stories_[number].moved, 16U) << number;
  rail().cancel(core::testing::sinkOf(1));  // over
  ASSERT_TRUE(post(21, slot));
  finish();
  EXPECT_EQ(stories_[21].moved, 16U);
}

TEST_P(StorageContract, AnErrorLosesNoOps) {
  const std::uint32_t good = pinned(place_->existing("good", kBytes));
  const std::uint32_t bad = pinned(place_->existing("bad", kBytes));
  place_->damage("bad");
  for (std::uint64_t number = 1; number <= 20; ++number)
    ASSERT_TRUE(post(number, number % 2 == 0 ? good : bad));
  finish();
  for (std::uint64_t number = 1; number <= 20; ++number) {
    EXPECT_EQ(stories_[number].moved, number % 2 == 0 ? 16U : 0U) << number;
    EXPECT_EQ(stories_[number].failed, number % 2 == 0 ? 0U : 16U) << number;
  }
}

TEST_P(StorageContract, OpsOutsideTheirPinFail) {
  const std::uint32_t slot = pinned(place_->existing("old", kBytes));
  Story& story = stories_[1];
  story.ops = {{.local = reinterpret_cast<std::uintptr_t>(memory_.data()),
                .remote = kFirstAddress + slot * kBytes + kBytes / 2 + 1,
                .bytes = kBytes / 2,
                .local_pin = kHost,
                .remote_pin = slot}};
  ASSERT_TRUE(offer(1));
  finish();
  EXPECT_EQ(story.failed, 1U);
}

TEST_P(StorageContract, AClosedLinkGivesAllOpsBackAndTouchesNoMemory) {
  const std::uint32_t slot = pinned(place_->existing("old", kBytes));
  for (std::uint64_t number = 1; number <= 20; ++number) ASSERT_TRUE(post(number, slot));
  close();
  EXPECT_TRUE(allOver());
  ASSERT_TRUE(poller_.run([&] { return end_.link->settled(); }));
  std::ranges::fill(memory_, 7U);
  finish();
  EXPECT_EQ(std::ranges::count(memory_, 7U), static_cast<std::ptrdiff_t>(memory_.size()));
}

TEST_P(StorageContract, AWithdrawnPinEndsItsWorksAndIsNotTouched) {
  const std::uint32_t slot = pinned(place_->existing("old", kBytes));
  for (std::uint64_t number = 1; number <= 20; ++number) ASSERT_TRUE(post(number, slot));
  Status left = Ok{};
  EXPECT_TRUE(poller_.run([&] {
    poll();
    left = backend_->unpin(kHost);
    return left || left.error().code != Code::kBusy;
  }));
  EXPECT_TRUE(left) << left.error().text();
  std::ranges::fill(memory_, 7U);
  finish();
  EXPECT_EQ(std::ranges::count(memory_, 7U), static_cast<std::ptrdiff_t>(memory_.size()));
}

INSTANTIATE_TEST_SUITE_P(Storage, StorageContract, ::testing::ValuesIn(storageBackends()),
                         [](const auto& backend) { return backend.param; });

}  // namespace
}  // namespace viaduct::testing
