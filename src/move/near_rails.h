// Finds the rails nearest to a piece of memory, if the rails are NICs. A backend uses this only if
// the user has named no rails. Threads: a value.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/backend.h"
#include "host/nearness.h"

namespace viaduct::move {

class NearRails {
 public:
  // Knows no NICs: all rails are equally near to all memory.
  NearRails() = default;
  // `nics`: the kernel's names of the rails' NICs, in the order of the rails.
  explicit NearRails(std::span<const std::string> nics, const host::Tree& tree = {});

  // False: all rails are equally near to all memory, so memory need not be located.
  bool differ() const { return differ_; }
  // The nearest rails; all rails if the place of the memory or of the NICs is unknown.
  core::RailMask to(const host::Place& memory) const;

 private:
  std::vector<host::Nic> nics_;
  host::Nodes nodes_;
  bool differ_ = false;
};

}  // namespace viaduct::move
