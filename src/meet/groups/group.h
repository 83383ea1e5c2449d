// Groups of processes: they form atomically, and have barriers and small gathers among their
// members. Threads: one at a time per object unless a line says otherwise. Every wait ends at its
// deadline, at `stop`, or when a member is lost.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meet/meeting.h"
#include "meet/place_options.h"

namespace viaduct::meet {

inline constexpr std::uint32_t kMaxMembers = 65'536;
inline constexpr std::size_t kMaxAboutBytes = 4096;  // of a member's description

struct JoinRequest {
  std::string group = "default";
  std::uint32_t size = 0;  // the number of members of the complete group
  // The wanted rank. None: the lowest rank that is free when the group forms.
  std::optional<std::uint32_t> rank = {};
  std::string name = {};   // for people, in errors too: "host:pid"
  std::string about = {};  // a text for the other members, up to 4 KiB
};

struct Member {
  std::uint32_t rank = 0;
  std::string name = {};
  std::string about = {};
  friend bool operator==(const Member&, const Member&) = default;
};

struct Roster {
  std::string group = {};
  std::uint64_t epoch = 0;           // a new one each time that a group of this name forms
  std::uint32_t rank = 0;            // this member's
  std::vector<Member> members = {};  // by rank
};

// A complete group, seen by one member. The destructor leaves the group. If finish() was not called
// before, the other members take that for this member's death.
class Group {
 public:
  virtual ~Group() = default;
  virtual const Roster& roster() const = 0;

  // Returns every member's value, by rank, once all members have called gather() for this round. A
  // barrier is a gather of "". After kTimeout or kCancelled it may be called again. The repeated
  // call waits for the same round, and the value of the first call counts. kTimeout names the
  // missing members.
  virtual Result<std::vector<std::string>> gather(std::string value, Deadline until,
                                                  const StopFlag& stop) = 0;
  // The reason why the group has ended, once it is known. It is a member's death with its rank and
  // name, or abandon()'s reason and caller. Any thread.
  virtual std::optional<Error> trouble() const = 0;
  // Asks all members to end their common work early. The group itself continues.
  virtual void requestStop() = 0;
  // The rank of a member that has called requestStop().
  virtual std::optional<std::uint32_t> stopRequestedBy() = 0;
  // Ends the group for all members. Waiting members get `reason`.
  virtual void abandon(const std::string& reason) = 0;
  // Says goodbye: from here on, leaving is not taken for a death.
  virtual Status finish(Deadline until) = 0;
};

// A meeting place where groups form. Threads: any, several at once.
class GroupPlace {
 public:
  virtual ~GroupPlace() = default;
  // Joins and waits until the group is complete. An error names the reason and the present members.
  // kInvalid: an impossible size or rank. kBusy: a live group of that name, or a taken rank.
  // kDenied: a wrong token. kTimeout: the missing members are named. If members of an earlier group
  // of that name have begun to say goodbye, waits for the end of that group.
  virtual Result<std::unique_ptr<Group>> join(const JoinRequest& request, Deadline until,
                                              const StopFlag& stop) = 0;
};

// Fails at once for malformed options, and connects to no server yet. A child of fork() opens its
// own place.
Result<std::unique_ptr<GroupPlace>> openGroupPlace(const PlaceOptions& options);

}  // namespace viaduct::meet
