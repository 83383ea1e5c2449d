// An agent with objects on a fake S3 server of its own. Threads: one.
#pragma once

#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "object/fake_store.h"

namespace viaduct::testing {

using namespace std::chrono_literals;

class ObjectTest : public ::testing::Test, protected FakeStore {
 protected:
  static constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

  explicit ObjectTest(const std::vector<std::string>& arguments = {}) : FakeStore(arguments) {}

  Settings settings() const {
    Settings out;
    out.listen = {};
    out.backends = {"object"};
    out.grace = 30s;  // a busy machine may take long for an abort
    out.others = others();
    for (const auto& [name, value] : more_) out.others[name] = value;
    return out;
  }
  // Opens the agent; `more_` has further settings.
  void open() {
    auto agent = Agent::open(settings());
    ASSERT_TRUE(agent) << agent.error().text();
    agent_.emplace(*std::move(agent));
    auto self = agent_->self();
    ASSERT_TRUE(self) << self.error().text();
    self_.emplace(*std::move(self));
    const auto ready = self_->ready(30s);
    ASSERT_TRUE(ready) << ready.error().text();
  }

  static bool isPattern(const std::vector<std::uint64_t>& memory, std::uint64_t bytes) {
    const auto wanted = pattern(bytes);
    return std::memcmp(memory.data(), wanted.data(), bytes) == 0;
  }

  Result<Pin> pinHost(const std::vector<std::uint64_t>& memory, std::uint64_t bytes) {
    const std::string label = std::to_string(++pins_);
    auto pin = agent_->pin(Segment::host(memory.data(), bytes), label);
    if (pin) VIADUCT_CHECK(self_->waitPin(label, 30s));
    return pin;
  }
  // Pins an existing object, or one to be written.
  Result<Pin> pinObject(const std::string& key, const FileOptions& options = {}) {
    return agent_->pin(Segment::object("s3://kv/" + key, options), std::to_string(++pins_));
  }
  static Selection whole(const Pin& pin) {
    return Selection{
        *Blocks::strided({.base = pin.info().address, .bytes = pin.info().bytes, .count = 1})};
  }
  Result<Transfer> plan(OpKind kind, const Pin& local, const Pin& remote) {
    return agent_->plan(kind, *self_, whole(local), whole(remote));
  }
  // Moves all of an object to or from memory, with this deadline.
  Status move(OpKind kind, const std::vector<std::uint64_t>& memory, const std::string& key,
              const FileOptions& options = {}, Duration deadline = 60s) {
    VIADUCT_TRY(const Pin object, pinObject(key, options));
    VIADUCT_TRY(const Pin host, pinHost(memory, object.size()));
    VIADUCT_TRY(Transfer transfer, plan(kind, host, object));
    VIADUCT_CHECK(transfer.post({.deadline = deadline}));
    return transfer.wait();
  }
  Status read(std::vector<std::uint64_t>& into, const std::string& key, Duration deadline = 60s) {
    return move(OpKind::kRead, into, key, {}, deadline);
  }
  Status write(const std::string& key, std::uint64_t bytes, Duration deadline = 60s) {
    return move(OpKind::kWrite, pattern(bytes), key, {.bytes = bytes, .create = true}, deadline);
  }

  static void expectSays(const Status& status, Code code,
                         std::initializer_list<std::string_view> texts) {
    ASSERT_FALSE(status);
    const std::string all = status.error().text();
    EXPECT_EQ(status.error().code, code) << all;
    for (const std::string_view text : texts) EXPECT_NE(all.find(text), std::string::npos) << all;
    EXPECT_EQ(all.find("fakesecret"), std::string::npos) << all;
  }

  std::map<std::string, std::string> more_;
  std::optional<Agent> agent_;
  std::optional<Peer> self_;
  int pins_ = 0;  // number of labels that were given
};

}  // namespace viaduct::testing
