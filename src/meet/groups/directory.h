// The names that members have published, and the searches that wait for one. Threads: the server's
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "meet/groups/member_connections.h"

namespace viaduct::meet::groups {

class Directory {
 public:
  // `memory` is the budget of the whole server.
  Directory(MemberConnections& connections, base::Budget& memory)
      : connections_(connections), memory_(memory) {}

  void publish(GuestId guest, NameMessage message);
  void withdraw(GuestId guest, std::uint32_t request);
  void find(GuestId guest, const NameMessage& message);
  void forget(GuestId guest, std::uint32_t request);
  void pong(GuestId guest, std::uint64_t number);
  void gone(GuestId guest);
  std::size_t size() const { return entries_.size(); }

 private:
  using Name = std::pair<std::string, std::string>;  // namespace, name
  struct NameRequest {
    GuestId guest;
    std::uint32_t number;
    std::size_t bytes = 0;  // that the request takes from the budgets
    bool is(GuestId whose, std::uint32_t which) const { return guest == whose && number == which; }
  };
  // The usage of one member: entries, claims and searches.
  struct MemberUsage {
    explicit MemberUsage(base::Budget& memory);
    std::size_t requests = 0;
    base::Budget bytes;
  };
  struct NameRecord {
    NameRequest by;
    std::string owner, value;
  };
  // A claim of a name whose owner was sent a ping.
  struct PendingClaim {
    NameRequest by;
    std::string owner, value;
    std::uint64_t pong;
  };

  bool open(NameRequest& request, const NameMessage& message);
  void close(const NameRequest& request);
  void enter(const Name& name, NameRequest by, std::string owner, std::string value);
  void remove(const Name& name);
  void answer(NameRequest to, const std::string& value);
  void refuse(NameRequest to, Error why);

  MemberConnections& connections_;
  std::map<Name, NameRecord> entries_;
  std::multimap<Name, PendingClaim> claims_;
  std::multimap<Name, NameRequest> seekers_;
  base::Budget& memory_;
  std::unordered_map<GuestId, MemberUsage> accounts_;  // by member
};

}  // namespace viaduct::meet::groups
