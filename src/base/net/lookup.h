// Resolves one name on a thread of its own. The system's resolver cannot be interrupted, so nobody
// joins the thread. Threads: under the owner's lock; the functions any.
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
  ~Lookup();  // the thread goes on alone, and its result is dropped
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;

  int fd() const;  // readable once the lookup has ended
  std::optional<Result<std::vector<SocketAddress>>> answer();

 private:
  struct Shared;
  explicit Lookup(std::shared_ptr<Shared> shared);
  std::shared_ptr<Shared> shared_;
};

// resolve() with a deadline: at `until` it leaves a hanging resolver behind.
Result<std::vector<SocketAddress>> resolve(const HostPort& where, Clock::time_point until);
Error lookupTimeout();

}  // namespace viaduct::base
