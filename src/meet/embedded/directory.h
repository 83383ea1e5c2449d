// The names that members have published, and who waits for one. Threads: the server's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "meet/embedded/messages.h"
#include "meet/embedded/post.h"

namespace viaduct::meet::embedded {

class Directory {
 public:
  // `memory`: of the whole server.
  Directory(Post& post, base::Budget& memory) : post_(post), memory_(memory) {}

  void publish(GuestId guest, NameMessage message);
  void withdraw(GuestId guest, std::uint32_t request);
  void find(GuestId guest, const NameMessage& message);
  void forget(GuestId guest, std::uint32_t request);
  void pong(GuestId guest, std::uint64_t number);
  void gone(GuestId guest);
  std::size_t size() const { return entries_.size(); }

 private:
  using Name = std::pair<std::string, std::string>;  // namespace, name
  struct Request {
    GuestId guest;
    std::uint32_t number;
    std::size_t bytes = 0;  // that it costs
    bool is(GuestId whose, std::uint32_t which) const { return guest == whose && number == which; }
  };
  // What a member has here: entries, claims and searches under way.
  struct Account {
    explicit Account(base::Budget& memory);
    std::size_t requests = 0;
    base::Budget bytes;
  };
  struct Entry {
    Request by;
    std::string owner, value;
  };
  struct Claim {  // of a name that another has, who was asked whether it lives
    Request by;
    std::string owner, value;
    std::uint64_t pong;
  };

  bool open(Request& request, const NameMessage& message);
  void close(const Request& request);
  void enter(const Name& name, Request by, std::string owner, std::string value);
  void remove(const Name& name);
  void answer(Request to, const std::string& value);
  void refuse(Request to, Error why);

  Post& post_;
  std::map<Name, Entry> entries_;
  std::multimap<Name, Claim> claims_;
  std::multimap<Name, Request> seekers_;
  base::Budget& memory_;
  std::unordered_map<GuestId, Account> accounts_;  // of those who have asked for anything
};

}  // namespace viaduct::meet::embedded
