// Publishes and finds names at an embedded server. Threads: any, several at once.
#pragma once

#include <viaduct/result.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "meet/embedded/messages.h"
#include "meet/embedded/server_connection.h"
#include "meet/embedded/site.h"

namespace viaduct::meet::embedded {

class DirectoryClient final : private ServerConnectionUser {
 public:
  explicit DirectoryClient(SitePtr site);
  ~DirectoryClient() override;
  DirectoryClient(const DirectoryClient&) = delete;
  DirectoryClient& operator=(const DirectoryClient&) = delete;

  Result<std::uint32_t> publish(const std::string& name, const std::string& value, Deadline until);
  // Withdraws a published name: once the server confirms, nobody finds the name. Waits at most a
  // second for the confirmation.
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
  Error unanswered(const PendingRequest& request) const;

  const SitePtr site_;
  std::condition_variable changed_;
  std::uint32_t last_ = 0;
  std::map<std::uint32_t, PendingRequest> requests_;  // published entries and pending requests
  std::set<std::uint32_t> withdrawing_;               // without the server's confirmation yet
  ServerConnection connection_;
};

}  // namespace viaduct::meet::embedded
