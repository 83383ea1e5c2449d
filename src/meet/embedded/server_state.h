// All groups and names of one server. Pure: messages in, messages out. Threads: the server's.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "meet/embedded/directory.h"
#include "meet/embedded/group_state.h"
#include "meet/embedded/member_connections.h"
#include "meet/embedded/messages.h"

namespace viaduct::meet::embedded {

class ServerState {
 public:
  // `first_epoch`: no other life of a server has used this one or a greater.
  // `once`: every group name forms one group here, see GroupState.
  ServerState(MemberConnections& connections, std::uint64_t first_epoch, bool once = false)
      : connections_(connections),
        epochs_(first_epoch),
        once_(once),
        names_(connections, memory_) {}

  // An error means that the guest does not keep to the protocol.
  Status take(GuestId guest, Type type, ByteSpan payload);
  void gone(GuestId guest, const std::string& how);
  // Ends every group, and the forming of every group.
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
  Status takeName(GuestId guest, Type type, ByteSpan payload);
  Status takeOfMember(GuestId guest, Type type, ByteSpan payload);
  void tidy(const Name& name);

  // For all that members have us keep: names, searches, values that are gathered.
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30U;

  MemberConnections& connections_;
  std::uint64_t epochs_;
  const bool once_;
  base::Budget memory_{kMaxBytes};
  std::map<Name, std::shared_ptr<GroupState>> groups_;
  std::unordered_map<GuestId, GuestGroup> guests_;
  Directory names_;
};

// What cannot be right in a join, wherever it is looked at. `max_about`: of the description, which
// may be encrypted when it comes to the server.
Status checkJoin(const JoinRequest& request, std::size_t max_about = kMaxAboutBytes);

}  // namespace viaduct::meet::embedded
