// A mover without an agent, on a fake S3 server of its own. Threads: one.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/object/object_mover.h"
#include "core/sink_testing.h"
#include "process/process.h"
#include "support/paths.h"

namespace viaduct::object {

using namespace std::chrono_literals;

class MoverFixture : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kHost = 1, kNew = 2, kOther = 3, kOld = 4;  // slots of pins
  static constexpr std::uint64_t kAddress = std::uint64_t{1} << 62U;         // of a pinned object

  // The server's endpoint and keys are added to the options.
  explicit MoverFixture(ObjectOptions options)
      : server_({testing::kServersPython, "-B", testing::kFakeS3}), options_(std::move(options)) {
    ::setenv("no_proxy", "*", 1);  // the server is on loopback
    options_.access = {
        .endpoint = *s3::parseEndpoint("http://127.0.0.1:" + server_.answer().value_or("none")),
        .region = "us-east-1",
        .credentials = {"FAKEKEY", "fakesecret", ""}};
    options_.sign_bodies = true;
    tell("bucket kv");
  }
  // Sends a command to the server, and returns its answer.
  std::string tell(const std::string& command) {
    return server_.ask(command, 60s).value_or("no answer");
  }
  void open() {
    auto opened = ObjectMover::open(options_, 30s);
    ASSERT_TRUE(opened) << opened.error().text();
    mover_ = *std::move(opened);
  }
  // Pins an object that is to be written.
  void pinNew(std::uint32_t slot, const std::string& key, std::uint64_t address,
              std::uint64_t bytes) {
    mover_->addPin(slot, {.facts = std::make_shared<const ObjectFacts>(
                              ObjectFacts{.name = {"kv", key}, .bytes = bytes}),
                          .address = address,
                          .bytes = bytes});
  }
  // Finds an object in another thread, as Agent::pin may, and pins it.
  void pinOld(std::uint32_t slot, const std::string& key, std::uint64_t address) {
    Result<ObjectFacts> found = Error{};
    std::thread([&] { found = mover_->look({"kv", key}, 60s); }).join();
    ASSERT_TRUE(found) << found.error().text();
    const std::uint64_t bytes = found->bytes;
    mover_->addPin(slot, {.facts = std::make_shared<const ObjectFacts>(*std::move(found)),
                          .address = address,
                          .bytes = bytes});
  }

  // Returns the slice's number, or nothing if there is no room. The number also selects the link.
  std::optional<std::uint64_t> post(OpKind kind, std::vector<core::Op> ops,
                                    std::uint64_t whole = 0) {
    const std::uint64_t number = ++last_;
    const auto& kept = ops_[number] = std::move(ops);
    if (mover_->post({.kind = kind,
                      .slice = core::testing::sliceOf(number),
                      .link = link(number),
                      .ops = kept,
                      .whole = whole}))
      return number;
    ops_.erase(number);
    return std::nullopt;
  }
  // Two links, which only their addresses tell apart.
  core::Link* link(std::uint64_t number) {
    return reinterpret_cast<core::Link*>(&links_[number % 2]);
  }

  void take(core::Completions& done) {
    for (const core::Completion& one : done) {
      const std::uint64_t number =
          std::visit([](const auto& end) { return end.slice.number; }, one);
      EXPECT_EQ(core::endedOps(one), ops_[number].size());
      EXPECT_EQ(ops_.erase(number), 1U) << "number " << number << " came back before";
      const auto* const failed = std::get_if<core::Failed>(&one);
      ended_[number] = failed ? std::optional(failed->why) : std::nullopt;
    }
    done.clear();
  }
  void poll() {
    mover_->drainEvent();
    mover_->poll(done_);
    take(done_);
  }
  // Waits until posts have ended.
  void pollOnce() {
    pollfd wait{.fd = mover_->eventFd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&wait, 1, 60'000), 1);
    poll();
  }
  // Waits until this post has ended, and returns its error.
  std::optional<Error> wait(std::uint64_t number) {
    while (ops_.contains(number) && !HasFatalFailure()) pollOnce();
    return ended_[number];
  }

  testing::Process server_;
  ObjectOptions options_;
  std::unique_ptr<ObjectMover> mover_;
  struct alignas(core::Link) LinkPlace {};
  std::array<LinkPlace, 2> links_ = {};
  std::map<std::uint64_t, std::vector<core::Op>> ops_;  // in flight
  std::map<std::uint64_t, std::optional<Error>> ended_;
  std::uint64_t last_ = 0;
  core::Completions done_;
};

}  // namespace viaduct::object
