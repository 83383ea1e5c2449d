// One member's client of the embedded server at which its group forms. Threads: see
// meet/groups/group.h.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/net/crypto.h"
#include "meet/embedded/server_connection.h"
#include "meet/embedded/site.h"
#include "meet/groups/group.h"
#include "meet/groups/group_messages.h"

namespace viaduct::meet::groups {

using embedded::Loop, embedded::SitePtr, embedded::Wait, embedded::waitAloud, embedded::waitFor;

// The election that has made the server. Another server may be elected later, so a member that
// loses this one before the group is complete has to look for the other.
struct Elected {
  std::string server_name = {};               // the member that runs the server
  std::unique_ptr<base::Cipher> cipher = {};  // encrypts the texts and values of members
};

class GroupClient : public Group, private embedded::ServerConnectionUser {
 public:
  explicit GroupClient(SitePtr site, std::optional<Elected> elected = {});
  ~GroupClient() override;
  GroupClient(const GroupClient&) = delete;
  GroupClient& operator=(const GroupClient&) = delete;

  Status join(const JoinRequest& request, Deadline until, const StopFlag& stop);
  // True if join() failed because the elected server is gone or out of reach. There may be another
  // one.
  bool displaced() const;
  // True if join() failed because no elected server has proved itself at the address. Another
  // program may have it.
  bool unproven() const;
  bool finished() const;  // finish() has succeeded
  void leave();           // closes the connection, as the destructor does

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
  Status takeRoster(ByteSpan payload);
  Status takeValues(ByteSpan payload);
  void lost(const Error& why, bool again) override;

  // `operation` names the wait in progress lines and errors.
  template <class Done>
  Wait await(Loop::Held& held, Deadline until, const StopFlag& stop, const std::string& operation,
             Done done);
  void askWhom();
  base::Cipher* cipher() const { return elected_ ? elected_->cipher.get() : nullptr; }
  Status seal(std::string& text) const;
  Status unseal(std::string& text) const;
  Error lostServer(const Error& why) const;
  Error gaveUp(Wait how, const std::string& operation) const;
  std::string label() const { return "group " + request_.group; }

  const SitePtr site_;
  const std::optional<Elected> elected_;
  mutable std::condition_variable changed_;
  JoinRequest request_;
  Clock::time_point join_until_ = {};
  std::optional<Error> refused_, trouble_;
  std::optional<std::uint32_t> stop_requested_by_;
  bool whole_ = false, finished_ = false, waiting_ = false, displaced_ = false, unproven_ = false;
  Roster roster_;
  std::uint64_t round_ = 0;
  std::optional<std::vector<std::string>> values_;
  std::string status_;  // the server's text about the missing members
  embedded::ServerConnection connection_;
};

}  // namespace viaduct::meet::groups
