// The mover without an agent: random posts, cancels and closes, while the server has faults.
#include "backends/object/mover.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>

#include <map>
#include <vector>

#include "base/random.h"
#include "process/process.h"

namespace viaduct::object {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kBytes = 64 << 10U, kAddress = std::uint64_t{1} << 62U;
constexpr std::uint32_t kHost = 1, kOld = 2, kNew = 3;  // slots of pins

class MoverTest : public ::testing::Test {
 protected:
  MoverTest() : server_({VIADUCT_PYTHON, "-B", VIADUCT_FAKE_S3}) {
    ::setenv("no_proxy", "*", 1);
    const std::string port = server_.answer().value_or("none");
    server_.ask("put kv old " + std::to_string(kBytes));
    Options options{.access = {.endpoint = *s3::parseEndpoint("http://127.0.0.1:" + port),
                               .region = "us-east-1",
                               .credentials = {"FAKEKEY", "fakesecret", ""}},
                    // The server completes no upload with parts as small as this, so each write
                    // ends with an abort.
                    .part = 16 << 10U,
                    .connections = 4,
                    .retries = 3,
                    .sign_bodies = true};
    mover_ = std::move(*Mover::open(options, 30s));
  }

  // Pins both objects. The old one is asked for in another thread, as Agent::pin may.
  void pin() {
    Result<ObjectFacts> found = Error{};
    std::thread([&] { found = mover_->look({"kv", "old"}, 60s); }).join();
    ASSERT_TRUE(found) << found.error().text();
    EXPECT_EQ(found->bytes, kBytes);
    mover_->addPin(kOld, {.facts = std::make_shared<const ObjectFacts>(*found),
                          .address = kAddress,
                          .bytes = kBytes});
    mover_->addPin(kNew, {.facts = std::make_shared<const ObjectFacts>(
                              ObjectFacts{.name = {"kv", "new"}, .bytes = kBytes}),
                          .address = 2 * kAddress - kBytes,
                          .bytes = kBytes});
  }

  void post(OpKind kind) {
    const bool reads = kind == OpKind::kRead;
    const core::Tag tag = ++last_;
    auto& op = ops_[tag];
    op = {.local = reinterpret_cast<std::uintptr_t>(memory_.data()),
          .remote = reads ? kAddress : 2 * kAddress - kBytes,
          .bytes = kBytes,
          .local_pin = kHost,
          .remote_pin = reads ? kOld : kNew};
    if (!mover_->post({.kind = kind, .tag = tag, .link = link(tag), .ops = {&op, 1}}))
      ops_.erase(tag);
  }
  // Two links, which only their addresses tell apart.
  core::Link* link(core::Tag tag) { return reinterpret_cast<core::Link*>(&links_[tag % 2]); }

  void take(core::Completions& done) {
    for (const core::Completion& one : done) {
      EXPECT_EQ(core::endedOps(one), 1U);
      const core::Tag tag = std::visit([](const auto& end) { return end.tag; }, one);
      EXPECT_EQ(ops_.erase(tag), 1U) << "tag " << tag << " came back before";
    }
    done.clear();
  }
  void poll() {
    mover_->drainEvent();
    mover_->poll(done_);
    take(done_);
  }

  testing::Process server_;
  std::unique_ptr<Mover> mover_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(kBytes);
  std::array<int, 2> links_ = {};
  std::map<core::Tag, core::Op> ops_;  // in flight
  core::Tag last_ = 0;
  core::Completions done_;
};

TEST_F(MoverTest, EachPostComesBackOnceAmongCancelsAndFaults) {
  pin();
  for (const char* fault : {"GET 503 5", "GET reset 5", "PUT 500 5", "GET wrongrange 3"})
    server_.ask(std::string("fault ") + fault);
  base::Random random(7);
  for (int step = 0; step < 400; ++step) {
    switch (random.below(8)) {
      case 0:
        mover_->cancel(last_ - random.below(4));
        break;
      case 1:
        mover_->close(link(random.below(2)), done_);
        take(done_);
        break;
      case 2:
      case 3:
        poll();
        break;
      default:
        post(random.chance(0.7) ? OpKind::kRead : OpKind::kWrite);
    }
  }
  mover_->cancelPin(kNew);
  while (!ops_.empty()) {
    pollfd wait{.fd = mover_->eventFd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&wait, 1, 60'000), 1);
    poll();
  }
  EXPECT_TRUE(mover_->idle());
  mover_.reset();  // waits for the aborts
  EXPECT_EQ(server_.ask("uploads"), "0");
}

TEST_F(MoverTest, EndsWithPostsInFlight) {
  pin();
  for (int i = 0; i < 100; ++i) post(i % 2 == 0 ? OpKind::kRead : OpKind::kWrite);
  EXPECT_LT(ops_.size(), 100U) << "there is room for 64";
  mover_->close(link(0), done_);
  mover_->close(link(1), done_);
  take(done_);
  EXPECT_TRUE(ops_.empty());
}

}  // namespace
}  // namespace viaduct::object
