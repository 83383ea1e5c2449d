#include "move/channel_rail.h"

#include <gtest/gtest.h>

#include <utility>

namespace viaduct::move {
namespace {

// A channel that has an event after its first progress(), and sleeps whenever the rail lets it.
class QuietChannel final : public Channel {
 public:
  explicit QuietChannel(ChannelHost& host) : Channel(host, Position{}, ChannelLife(1, {})) {}
  void add(Job&) override {}
  void stop(Job&) override {}
  void close() override {}
  void settle() override {}
  void forgetJobs() override {}
  void progress(Clock::time_point, const Turn&) override {
    if (!std::exchange(progressed_, true)) event_ = true;
  }
  bool sleep(Clock::time_point) override { return true; }
  void awake() override {}
  bool hasEvents() const override { return event_; }
  void handleEvents() override {
    event_ = false;
    ++handled;
  }
  int handled = 0;

 private:
  bool progressed_ = false, event_ = false;
};

class ChannelRailTest : public ::testing::Test, public ChannelHost {
 protected:
  void opened(Channel&) override {}
  void broke(Channel&) override {}
  void activate(Channel& channel) override { rail_.activate(channel); }
  void deactivate(Channel& channel) override { rail_.deactivate(channel); }

  std::unique_ptr<base::Poller> poller_ = *base::Poller::open();
  ChannelRail rail_{"rail", 0, *poller_};
  QuietChannel channel_{*this};
  core::Completions out_;
};

// Several threads may poll the rail, one after the other, before a thread stops it and handles the
// event.
TEST_F(ChannelRailTest, AnEventOutlivesFurtherPollsOfAQuietChannel) {
  rail_.activate(channel_);
  rail_.poll(out_);
  rail_.poll(out_);
  ASSERT_TRUE(rail_.hasEvents());
  rail_.handleEvents(out_);
  EXPECT_EQ(channel_.handled, 1);
  EXPECT_FALSE(rail_.hasEvents());
  rail_.poll(out_);
  EXPECT_FALSE(channel_.active) << "a channel without events sleeps";
  EXPECT_FALSE(rail_.busy());
}

}  // namespace
}  // namespace viaduct::move
