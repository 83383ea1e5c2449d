// Urgent transfers beside background ones, while a peer's process is killed or frozen. Each
// transfer ends once, and urgent ones do not wait for a peer that is gone. VIADUCT_SEED chooses the
// moments.
#include <atomic>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "process/pair.h"
#include "process/seeds.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kUrgent = 64 << 10, kBackground = 1 << 20;

// A transfer with memory of its own that is posted over and over.
struct Stream {
  Survivor::Memory memory;
  std::atomic<std::uint64_t>* ends;
  std::optional<Transfer> transfer;
  std::optional<Storm> storm;
};

class Classes : public ::testing::TestWithParam<DataPath> {
 protected:
  // Starts a storm between memory here and at the peer, which no other stream uses.
  Stream& begin(PeerProcess& process, const std::string& peer, OpKind kind, Priority priority) {
    const std::uint64_t bytes = priority == Priority::kUrgent ? kUrgent : kBackground;
    const std::string label = "stream" + std::to_string(streams_.size());
    process.must("memory " + label + " " + std::to_string(bytes) +
                 (GetParam().heap ? " heap" : ""));
    std::atomic<std::uint64_t>& ends = ends_.emplace_back();
    Stream& stream = streams_.emplace_back();
    stream.memory = survivor_->memory(bytes, "");
    stream.ends = &ends;
    stream.transfer.emplace(
        survivor_->plan(kind, stream.memory, label, 16384, counting(priority, ends), peer));
    stream.storm.emplace(*stream.transfer);
    return stream;
  }
  static TransferOptions counting(Priority priority, std::atomic<std::uint64_t>& ends) {
    return {.priority = priority, .on_end = [&ends](const TransferEnd&) { ++ends; }};
  }
  void beginAll() {
    for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
      begin(*victim_, "victim", kind, Priority::kBackground);
      begin(*victim_, "victim", kind, Priority::kUrgent);
    }
    third_urgent_ = &begin(*third_, "third", OpKind::kRead, Priority::kUrgent);
    victim_->must("memory theirs " + std::to_string(kBackground));
    victim_->must("plan t write survivor theirs target 65536");
    victim_->must("storm t");
    for (Stream& stream : streams_) ASSERT_TRUE(stream.storm->finished(2));
  }
  // The urgent transfers to the other peer go on.
  void expectThirdGoesOn() const {
    Storm& storm = *third_urgent_->storm;
    EXPECT_TRUE(storm.finished(storm.done() + 2)) << storm.failure(0s)->text();
  }
  // Closes the agent. When this returns, all callbacks have run.
  void endAgent() {
    target_.reset();
    survivor_.reset();
  }
  // Ends the storms and the agent, and then counts.
  void expectEachPostEndedOnce() {
    std::vector<std::uint64_t> accepted;
    for (Stream& stream : streams_) accepted.push_back(stream.storm->end());
    streams_.clear();
    endAgent();
    for (std::size_t i = 0; i < accepted.size(); ++i) EXPECT_EQ(ends_[i], accepted[i]) << i;
  }
  void sleepAtRandom() {
    std::this_thread::sleep_for(std::chrono::microseconds(random_.below(20'000)));
  }

  base::Random random_{fromEnvironment("VIADUCT_SEED", 1)};
  std::deque<std::atomic<std::uint64_t>> ends_;  // of each stream
  // A long detection time: a frozen peer is not lost.
  std::optional<Survivor> survivor_{std::in_place, GetParam(), 8h, 60s};
  std::optional<Survivor::Memory> target_ = survivor_->memory(kBackground, "target");
  std::unique_ptr<PeerProcess> victim_ = survivor_->start();
  std::unique_ptr<PeerProcess> third_ = survivor_->start("third");
  std::deque<Stream> streams_;
  Stream* third_urgent_ = nullptr;
};

TEST_P(Classes, APeerIsKilled) {
  beginAll();
  sleepAtRandom();
  const Peer peer = survivor_->peer();
  const auto epoch = peer.epoch();
  victim_->process().kill();
  for (Stream& stream : streams_) {
    if (&stream == third_urgent_) continue;
    const auto failure = stream.storm->failure(60s);
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code, Code::kPeerLost) << failure->text();
    stream.memory.fill(0x11);
  }
  ASSERT_TRUE(peer.over(epoch, 60s));
  EXPECT_TRUE(peer.settled());
  target_->fill(0x22);
  expectThirdGoesOn();
  victim_ = survivor_->start();
  survivor_->expectWorks(*victim_);
  for (const Stream& stream : streams_) {
    if (&stream == third_urgent_) continue;
    EXPECT_EQ(stream.memory.differ(0x11), 0);
  }
  EXPECT_EQ(target_->differ(0x22), 0);
  expectEachPostEndedOnce();
}

TEST_P(Classes, APeerIsFrozenAndContinues) {
  beginAll();
  sleepAtRandom();
  victim_->process().stop();
  expectThirdGoesOn();
  victim_->process().resume();
  for (Stream& stream : streams_) {
    Storm& storm = *stream.storm;
    ASSERT_TRUE(storm.finished(storm.done() + 2)) << storm.failure(0s)->text();
  }
  expectEachPostEndedOnce();
}

// The frozen peer has more background transfers than a rail takes at once.
TEST_P(Classes, AFrozenPeerHasManyBackgroundTransfers) {
  constexpr std::size_t kMany = 5000;
  const auto memory = survivor_->memory(kUrgent, "");
  std::atomic<std::uint64_t>& ends = ends_.emplace_back();
  std::deque<Transfer> many;
  for (std::size_t i = 0; i < kMany; ++i)
    many.push_back(survivor_->plan(OpKind::kRead, memory, "small", 65536,
                                   counting(Priority::kBackground, ends)));
  std::atomic<std::uint64_t>& urgent_ends = ends_.emplace_back();
  const auto mine = survivor_->memory(kUrgent, "");
  Transfer urgent = survivor_->plan(OpKind::kRead, mine, "small", 4096,
                                    counting(Priority::kUrgent, urgent_ends), "third");
  victim_->process().stop();
  for (Transfer& one : many) ASSERT_TRUE(one.post());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(urgent.post());
    const Status ended = urgent.wait(60s);
    ASSERT_TRUE(ended) << ended.error().text();
  }
  victim_->process().kill();
  for (Transfer& one : many) static_cast<void>(one.wait(60s));
  many.clear();
  {
    const Transfer gone = std::move(urgent);
  }
  endAgent();
  EXPECT_EQ(ends, kMany);
  EXPECT_EQ(urgent_ends, 3U);
}

// All data paths but ofi, whose rails run the same code as those of ucx, and which opens more
// slowly.
std::vector<DataPath> ways() {
  std::vector<DataPath> all(std::begin(kDataPaths), std::end(kDataPaths));
  std::erase_if(all, [](const DataPath& path) { return std::string_view(path.backend) == "ofi"; });
  return all;
}
INSTANTIATE_TEST_SUITE_P(Ways, Classes, ::testing::ValuesIn(ways()),
                         [](const auto& path) { return std::string(path.param.name); });

}  // namespace
}  // namespace viaduct::testing
