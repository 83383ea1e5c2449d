// Faulty servers in etcd's place, each with one thread, on loopback. Threads: any.
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "base/fd.h"

namespace viaduct::testing {

// Accepts every connection and never answers.
class SilentServer {
 public:
  SilentServer();
  std::string url() const;

 private:
  std::uint16_t port_ = 0;
  base::Fd listener_;
};

// Answers a number of requests, or all, with the same bytes, and closes each connection. It never
// answers later requests.
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

// Forwards bytes to another port of loopback until cut(); then refuses connections until mend().
class Forwarder {
 public:
  explicit Forwarder(std::uint16_t to);
  ~Forwarder();
  Forwarder(const Forwarder&) = delete;
  Forwarder& operator=(const Forwarder&) = delete;
  std::string url() const;
  void cut();
  void mend();
  // From now on drops every other answer to a transaction, starting with the first, and closes its
  // connection. Answers about leases are treated alike.
  void loseAnswers() { losing_ = true; }

  // Withholds the next request to `path`: etcd does not get the request, or the member does not get
  // the answer. The member's connection stays silent.
  enum class Keep : std::uint8_t { kRequest, kAnswer };
  void keep(Keep what, const std::string& path = "/v3/kv/txn");
  void waitUntilKept() const;
  // Sends the withheld bytes on. Returns when etcd has executed the transaction.
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
