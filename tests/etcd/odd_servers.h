// What may stand where an etcd should: servers of one thread each, on loopback. Threads: any.
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "base/fd.h"

namespace viaduct::testing {

// Accepts every connection and never says a word.
class SilentServer {
 public:
  SilentServer();
  std::string url() const;

 private:
  std::uint16_t port_ = 0;
  base::Fd listener_;
};

// Answers every request, or so many, with the same bytes and closes the connection; and never says
// a word to those that come later.
class ParrotServer {
 public:
  explicit ParrotServer(std::string answer, int times = INT_MAX);
  ~ParrotServer();
  ParrotServer(const ParrotServer&) = delete;
  ParrotServer& operator=(const ParrotServer&) = delete;
  std::string url() const;

 private:
  void serve();
  std::string answer_;
  int times_;
  std::uint16_t port_ = 0;
  base::Fd listener_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// Passes bytes on to another port of loopback, until it is cut; then refuses until it is mended.
class Forwarder {
 public:
  explicit Forwarder(std::uint16_t to);
  ~Forwarder();
  Forwarder(const Forwarder&) = delete;
  Forwarder& operator=(const Forwarder&) = delete;
  std::string url() const;
  void cut();
  void mend();
  // From here on every other answer to a transaction is lost with its connection: the first, the
  // third, and so on. So are those to who asks for a lease.
  void loseAnswers() { losing_ = true; }

  // The next request to that path is kept: etcd does not get it, or nobody gets its answer. Whoever
  // asked hears of it no more.
  enum class Keep : std::uint8_t { kRequest, kAnswer };
  void keep(Keep what, const std::string& path = "/v3/kv/txn");
  void waitUntilKept() const;
  // What was kept goes on its way; returns when etcd has done it.
  void letGo();

 private:
  void serve();
  void pass(base::Fd from);
  void keepOne(std::string request, int from, int to);
  const std::uint16_t to_;
  std::uint16_t port_ = 0;
  base::Fd listener_, bell_;
  std::atomic<bool> stop_ = false, cut_ = false, losing_ = false;
  std::atomic<int> open_ = 0, transactions_ = 0, leases_ = 0;
  std::atomic<bool> keeps_ = false;
  std::string kept_path_;
  std::atomic<bool> keeps_answer_ = false, kept_ = false, let_go_ = false, done_ = false;
  std::thread thread_;
};

}  // namespace viaduct::testing
