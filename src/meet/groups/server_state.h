// All groups and names of one server. Pure: messages in, messages out. Threads: the server's
// thread.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "meet/groups/directory.h"
#include "meet/groups/group_state.h"
#include "meet/groups/member_connections.h"

namespace viaduct::meet::groups {

class ServerState {
 public:
  // `first_epoch`: no earlier start of a server has used this epoch or a greater one. `once`: every
  // group name forms one group here, see GroupState.
  ServerState(MemberConnections& connections, std::uint64_t first_epoch, bool once = false)
      : connections_(connections),
        epochs_(first_epoch),
        once_(once),
        names_(connections, memory_) {}

  // An error means that the guest violates the protocol.
  Status take(GuestId guest, Type type, ByteSpan payload);
  void gone(GuestId guest, const std::string& how);
  // Ends every group, and refuses the members of groups that are forming.
  void close(const Error& why);

  std::size_t liveGroups() const;
  bool over() const;  // `once`: a group has formed and ended
  std::size_t names() const { return names_.size(); }

 private:
  using Name = std::pair<std::string, std::string>;  // namespace, group
  struct GuestGroup {
    Name name;
    std::shared_ptr<GroupState> state;
  };

  Status join(GuestId guest, ByteSpan payload);
  Status takeOfMember(GuestId guest, GroupState& group, Type type, ByteSpan payload);
  void tidy(const Name& name);

  // The budget for all that the server keeps for members: names, searches, gathered values.
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30U;

  MemberConnections& connections_;
  std::uint64_t epochs_;
  const bool once_;
  base::Budget memory_{kMaxBytes};
  std::map<Name, std::shared_ptr<GroupState>> groups_;
  std::unordered_map<GuestId, GuestGroup> guests_;
  Directory names_;
};

// Refuses impossible values of a join, at the member and at the server. `max_about` limits the
// description, which may be encrypted at the server.
Status checkJoin(const JoinRequest& request, std::size_t max_about = kMaxAboutBytes);

}  // namespace viaduct::meet::groups
