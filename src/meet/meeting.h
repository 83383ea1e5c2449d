// The interface of a meeting place, where processes find each other. It has groups that form
// atomically, barriers and small gathers among their members, and a directory of names. Threads:
// one at a time per object unless a line says otherwise. Every wait ends at its deadline, at
// `stop`, or when a member is lost.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/stop.h"

namespace viaduct::meet {

using base::StopFlag;

inline constexpr std::uint32_t kMaxMembers = 65'536;
inline constexpr std::size_t kMaxNameBytes = 255;    // of groups, members, entries, namespaces
inline constexpr std::size_t kMaxAboutBytes = 4096;  // texts of members, and reasons
inline constexpr std::size_t kMaxValueBytes = std::size_t{256} * 1024;  // gathered, published

struct JoinRequest {
  std::string group = "default";
  std::uint32_t size = 0;  // the number of members of the complete group
  // The wanted rank. None: the lowest that is free at the end.
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
  // barrier is a gather of "". After kTimeout or kCancelled it may be called again. It then waits
  // for the same round, and the first value counts. kTimeout names the missing members.
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

// A name in the directory. The destructor removes it, and so does the end of this process.
class PublishedName {
 public:
  virtual ~PublishedName() = default;
};

// Threads: any, several at once.
class MeetingPlace {
 public:
  virtual ~MeetingPlace() = default;
  virtual std::string text() const = 0;  // "embedded 10.0.0.1:7000", "etcd http://etcd:2379"

  // Joins and waits until the group is complete. An error names the reason and the present members.
  // kInvalid: an impossible size or rank. kBusy: a live group of that name, or a taken rank.
  // kDenied: a wrong token. kTimeout: the missing members are named. If members of an earlier group
  // of that name have begun to say goodbye, waits for the end of that group.
  virtual Result<std::unique_ptr<Group>> join(const JoinRequest& request, Deadline until,
                                              const StopFlag& stop) = 0;
  // Fails if the name belongs to another living process.
  virtual Result<std::unique_ptr<PublishedName>> publish(const std::string& name,
                                                         const std::string& value,
                                                         Deadline until) = 0;
  // Waits for the name up to `until`.
  virtual Result<std::string> find(const std::string& name, Deadline until,
                                   const StopFlag& stop) = 0;
};

}  // namespace viaduct::meet
