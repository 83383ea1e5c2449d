// Which key holds what. Threads: plain values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "meet/etcd/gateway.h"
#include "meet/etcd/messages.h"

namespace viaduct::meet::etcd {

// "a/b" as "a%2fb": a name is one part of a key, and no name is the beginning of another one's
// keys.
std::string escaped(std::string_view name);

// Random; nobody else has it.
std::uint64_t uniqueNumber();

struct Space {
  std::string root = {};  // "/viaduct", without a slash at its end

  std::string group(std::string_view name) const { return root + "/group/" + escaped(name) + "/"; }
  std::string head(std::string_view group_name) const { return group(group_name) + "head"; }
  std::string entry(std::string_view name) const { return root + "/name/" + escaped(name); }
  // Who has that number does not want its entry any more: nothing makes it then.
  std::string withdrawn(std::uint64_t claim) const;
};

// The keys of one forming of a group.
class GroupKeys {
 public:
  GroupKeys() = default;
  GroupKeys(const Space& space, std::string_view group, std::uint64_t instance);

  const std::string& head() const { return head_; }
  KeyRange all() const { return prefix(base_); }
  KeyRange up() const { return prefix(base_ + "up/"); }      // members to the leader
  KeyRange down() const { return prefix(base_ + "down/"); }  // to all
  std::string up(MemberId id) const;
  std::string here(MemberId id) const;    // a member's answer to the last call; within up()
  std::string answer(MemberId id) const;  // from the leader to one
  std::string gaveUp(MemberId id) const;  // that member comes no more: nothing makes its keys then
  std::string lead() const { return base_ + "down/lead"; }
  std::string trouble() const { return base_ + "down/trouble"; }
  std::string stop() const { return base_ + "down/stop"; }
  std::string call() const { return base_ + "down/call"; }
  std::string part(std::uint32_t number) const;

  // The member whose message to the leader stands under that key.
  std::optional<MemberId> memberOf(std::string_view key) const;
  // The member whose answer to a call stands there.
  std::optional<MemberId> answererOf(std::string_view key) const;
  bool isPart(std::string_view key) const { return key.starts_with(base_ + "down/part/"); }

 private:
  std::string head_, base_;
};

}  // namespace viaduct::meet::etcd
