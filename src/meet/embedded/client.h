// A member's clients of an embedded meeting place. Threads: see meet/meeting.h. join(), find() and
// publish() of one place may run in several threads at once.
#pragma once

#include <viaduct/result.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/waiting.h"
#include "meet/embedded/messages.h"
#include "meet/embedded/server_connection.h"
#include "meet/meeting.h"

namespace viaduct::meet::embedded {

// The data that all clients of one server share: its addresses, and the thread of their
// connections.
struct Site {
  std::string where = {}, name_space = {};
  std::vector<std::string> addresses = {};
  Key token = {};
  // True: another server may be elected. If this one is lost before the group is complete, the
  // caller has to look for the other.
  bool elected = false;
  std::string server_name = {};               // the member that runs the server; empty: none does
  std::unique_ptr<base::Cipher> cipher = {};  // encrypts the texts and values of members
  base::SayWaiting waiting = {};
  std::unique_ptr<Loop> loop = {};
};
using SitePtr = std::shared_ptr<Site>;

inline ServerConnection::Target targetOf(const Site& site) {
  return {site.where, site.addresses, site.token, site.elected};
}

// The pause between the loss of a meeting place and the first try to reach it again.
inline constexpr std::chrono::milliseconds kReopenAfter{20};

// The outcome of a wait.
enum class Wait : std::uint8_t { kDone, kTimeout, kStopped };

// Waits with the loop's lock held. Checks `stop` in intervals, because a signal handler may set it.
template <class Done>
Wait waitFor(std::condition_variable& changed, Loop::Held& held, Clock::time_point until,
             const StopFlag& stop, Done done) {
  constexpr std::chrono::milliseconds kLook{20};
  while (!done()) {
    const auto now = Clock::now();
    if (stop.load(std::memory_order_relaxed)) return Wait::kStopped;
    if (now >= until) return Wait::kTimeout;
    changed.wait_until(held, std::min(until, now + kLook));
  }
  return Wait::kDone;
}

class GroupClient final : public Group, private ServerConnectionUser {
 public:
  explicit GroupClient(SitePtr site);
  ~GroupClient() override;
  GroupClient(const GroupClient&) = delete;
  GroupClient& operator=(const GroupClient&) = delete;

  Status join(const JoinRequest& request, Deadline until, const StopFlag& stop);
  // True if join() failed because the elected server is gone or out of reach. There may be another
  // one.
  bool displaced() const;
  bool finished() const;  // finish() has succeeded

  const Roster& roster() const override { return roster_; }
  Result<std::vector<std::string>> gather(std::string value, Deadline until,
                                          const StopFlag& stop) override;
  std::optional<Error> trouble() const override;
  void requestStop() override;
  std::optional<std::uint32_t> stopRequestedBy() override;
  void abandon(const std::string& reason) override;
  Status finish(Deadline until) override;

 private:
  void ready() override;
  Status message(Type type, ByteSpan payload) override;
  void lost(const Error& why, bool again) override;

  // `operation` names the wait in progress lines and errors.
  template <class Done>
  Wait await(Loop::Held& held, Deadline until, const StopFlag& stop, const std::string& operation,
             Done done);
  void askWhom();
  Status unseal(std::string& text) const;
  Error lostServer(const Error& why) const;
  Error gaveUp(Wait how, const std::string& operation) const;
  std::string label() const { return "group " + request_.group; }

  const SitePtr site_;
  mutable std::condition_variable changed_;
  JoinRequest request_;
  Clock::time_point join_until_ = {};
  std::optional<Error> refused_, trouble_;
  std::optional<std::uint32_t> stop_requested_by_;
  bool whole_ = false, finished_ = false, waiting_ = false, displaced_ = false;
  Roster roster_;
  std::uint64_t round_ = 0;
  std::optional<std::vector<std::string>> values_;
  std::string status_;  // the server's text about the missing members
  ServerConnection connection_;
};

class DirectoryClient final : private ServerConnectionUser {
 public:
  explicit DirectoryClient(SitePtr site);
  ~DirectoryClient() override;
  DirectoryClient(const DirectoryClient&) = delete;
  DirectoryClient& operator=(const DirectoryClient&) = delete;

  Result<std::uint32_t> publish(const std::string& name, const std::string& value, Deadline until);
  void withdraw(std::uint32_t request);
  Result<std::string> find(const std::string& name, Deadline until, const StopFlag& stop);

 private:
  struct PendingRequest {
    Type type = Type::kFind;
    NameMessage message = {};
    std::optional<Result<std::string>> answer = {};
  };

  void ready() override;
  Status message(Type type, ByteSpan payload) override;
  void lost(const Error& why, bool again) override;
  struct Answered {
    std::uint32_t request;
    std::string value;
  };
  // A request that was answered with a value stays in requests_, until find() or withdraw() removes
  // it.
  Result<Answered> ask(PendingRequest request, Deadline until, const StopFlag& stop);
  Wait await(Loop::Held& held, const PendingRequest& request, Deadline until, const StopFlag& stop);
  Error unanswered(const PendingRequest& request) const;

  const SitePtr site_;
  std::condition_variable changed_;
  std::uint32_t last_ = 0;
  std::map<std::uint32_t, PendingRequest> requests_;  // published entries and pending requests
  ServerConnection connection_;
};

}  // namespace viaduct::meet::embedded
