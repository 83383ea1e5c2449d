// One name looked up by a thread of its own: the system's resolver cannot be interrupted, so the
// thread is never waited for. Threads: under the owner's lock; the functions any.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/net/address.h"

namespace viaduct::base {

class Lookup {
 public:
  static Result<std::unique_ptr<Lookup>> start(const HostPort& where);
  ~Lookup();  // the thread ends by itself, and finds nobody who wants to know
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  int fd() const;  // readable when there is an answer
  std::optional<Result<std::vector<SocketAddress>>> answer();

 private:
  struct Shared;
  explicit Lookup(std::shared_ptr<Shared> shared);
  std::shared_ptr<Shared> shared_;
};

// resolve(), which gives up at `until`: a resolver that hangs is left behind.
Result<std::vector<SocketAddress>> resolve(const HostPort& where, Clock::time_point until);
Error lookupTimeout();

}  // namespace viaduct::base
