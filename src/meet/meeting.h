// Where processes find each other: groups that form atomically, barriers and small gathers among
// their members, and a directory of names. Threads: one at a time per object unless a line says
// otherwise; every wait ends at its deadline, at `stop`, or when a member is lost.
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
inline constexpr std::size_t kMaxAboutBytes = 4096;  // of members, and of reasons
inline constexpr std::size_t kMaxValueBytes = std::size_t{256} * 1024;  // gathered, published

struct JoinRequest {
  std::string group = "default";
  std::uint32_t size = 0;                  // members that the group has when it is whole
  std::optional<std::uint32_t> rank = {};  // asked for; none: the lowest that is free at the end
  std::string name = {};                   // for people: "host:pid"; in every error about it
  std::string about = {};                  // what the others get to know, up to 4 KiB
};

struct Member {
  std::uint32_t rank = 0;
  std::string name = {};
  std::string about = {};
  friend bool operator==(const Member&, const Member&) = default;
};

struct Roster {
  std::string group = {};
  std::uint64_t epoch = 0;           // another one for every forming of a group of this name
  std::uint32_t rank = 0;            // ours
  std::vector<Member> members = {};  // by rank
};

// A whole group, seen by one member. Its destructor leaves: what a member leaves before it said
// goodbye with finish() counts as its death.
class Group {
 public:
  virtual ~Group() = default;
  virtual const Roster& roster() const = 0;

  // Every member's value, by rank, once all have called it as often as we. Barrier: gather of "".
  // After kTimeout or kCancelled it may be called again: it goes on waiting for the same round, in
  // which the value first given counts. kTimeout says who is missing.
  virtual Result<std::vector<std::string>> gather(std::string value, Deadline until,
                                                  const StopFlag& stop) = 0;
  // What ended the group, once that is known: a member's death with its rank and name, or what
  // abandon() said, and by whom. Any thread.
  virtual std::optional<Error> trouble() const = 0;
  // Asks all members to end early what they do together. The group itself goes on.
  virtual void requestStop() = 0;
  // The rank of a member that has asked for that.
  virtual std::optional<std::uint32_t> stopRequestedBy() = 0;
  // Ends the group for all; those who wait get `reason`.
  virtual void abandon(const std::string& reason) = 0;
  // Says goodbye: from here on, our going is no death.
  virtual Status finish(Deadline until) = 0;
};

// A name in the directory; its destructor, or the death of this process, takes it away.
class PublishedName {
 public:
  virtual ~PublishedName() = default;
};

// Threads: any, several at once.
class MeetingPlace {
 public:
  virtual ~MeetingPlace() = default;
  virtual std::string text() const = 0;  // "embedded 10.0.0.1:7000", "etcd http://etcd:2379"

  // Joins and waits until the group is whole. Refusals name what is wrong and who is there:
  // kInvalid for a size or rank that cannot be, kBusy for a live group of that name and a taken
  // rank, kDenied for a wrong token, kTimeout with who is missing. Where members of a group of that
  // name have begun to say goodbye, its end is waited for.
  virtual Result<std::unique_ptr<Group>> join(const JoinRequest& request, Deadline until,
                                              const StopFlag& stop) = 0;
  // Refused when the name is another living process's.
  virtual Result<std::unique_ptr<PublishedName>> publish(const std::string& name,
                                                         const std::string& value,
                                                         Deadline until) = 0;
  // Waits for the name up to `until`.
  virtual Result<std::string> find(const std::string& name, Deadline until,
                                   const StopFlag& stop) = 0;
};

}  // namespace viaduct::meet
