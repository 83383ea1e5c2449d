// An agent with a pinned file, for tests of the backend file.
#pragma once

#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "support/bytes.h"
#include "support/temporary_folder.h"

namespace viaduct::testing {

using namespace std::chrono_literals;

inline constexpr std::uint64_t kMiB = 1U << 20U;

// The content of a file that the page cache and O_DIRECT agree on.
inline std::vector<std::byte> bytesOfFile(const std::string& path) {
  std::vector<std::byte> out(std::filesystem::file_size(path));
  std::ifstream(path, std::ios::binary)
      .read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
  return out;
}

class FileTest : public ::testing::Test {
 protected:
  static Settings settings(std::string engine = "auto") {
    Settings out{.name = "me", .listen = {}, .backends = {"file"}};
    out.others["VIADUCT_FILE_ENGINE"] = std::move(engine);
    return out;
  }
  void open(const Settings& with) {
    self_.reset();
    auto agent = Agent::open(with);
    ASSERT_TRUE(agent) << agent.error().text();
    agent_.emplace(*std::move(agent));
    connect();
  }
  void connect() {
    auto self = agent_->self();
    ASSERT_TRUE(self) << self.error().text();
    self_ = *self;
    const auto ready = self_->ready(30s);
    ASSERT_TRUE(ready) << ready.error().text();
  }
  std::string path(const std::string& name = "data") const { return folder_.path() + "/" + name; }
  // Makes a file of random bytes.
  std::vector<std::byte> make(const std::string& name, std::uint64_t bytes,
                              std::uint64_t seed = 1) {
    std::vector<std::byte> content(bytes);
    fillRandom(content, seed);
    std::ofstream(path(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()),
               static_cast<std::streamsize>(content.size()));
    return content;
  }
  Pin pinned(const Segment& segment) {
    const std::string label = "pin" + std::to_string(++pins_);
    auto pin = agent_->pin(segment, label);
    EXPECT_TRUE(pin) << pin.error().text();
    EXPECT_TRUE(self_->waitPin(label, 30s));
    return *std::move(pin);
  }
  Pin allocated(std::uint64_t bytes) {
    const std::string label = "pin" + std::to_string(++pins_);
    auto pin = agent_->allocate(bytes, {.label = label});
    EXPECT_TRUE(pin) << pin.error().text();
    EXPECT_TRUE(self_->waitPin(label, 30s));
    return *std::move(pin);
  }
  static Selection part(const Pin& pin, std::uint64_t at, std::uint64_t bytes) {
    return {.blocks =
                *Blocks::strided({.base = pin.info().address + at, .bytes = bytes, .count = 1})};
  }
  Status run(OpKind kind, const Selection& local, const Selection& remote,
             const PostOptions& options = {}) {
    VIADUCT_TRY(auto transfer, agent_->plan(kind, *self_, local, remote));
    VIADUCT_CHECK(transfer.post(options));
    const Status waited = transfer.wait();
    path_ = transfer.path();
    return waited;
  }
  // Reads the file into memory, or writes the memory to the file.
  Status read(const Pin& file, std::uint64_t at, const Pin& memory, std::uint64_t into,
              std::uint64_t bytes) {
    return run(OpKind::kRead, part(memory, into, bytes), part(file, at, bytes));
  }
  Status write(const Pin& file, std::uint64_t at, const Pin& memory, std::uint64_t from,
               std::uint64_t bytes) {
    return run(OpKind::kWrite, part(memory, from, bytes), part(file, at, bytes));
  }

  TemporaryFolder folder_;
  std::optional<Agent> agent_;
  std::optional<Peer> self_;
  Path path_;
  int pins_ = 0;
};

}  // namespace viaduct::testing
