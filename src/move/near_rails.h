// Which rails are nearest to which memory, where they are NICs that nobody has named. Threads:
// a value.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/backend.h"
#include "host/nearness.h"

namespace viaduct::move {

class NearRails {
 public:
  // Nothing is known of any rail: all are as near.
  NearRails() = default;
  // The rails' NICs, in their order, as the kernel calls them. Files are read below `root`.
  explicit NearRails(std::span<const std::string> nics, const std::string& root = "/");

  // False: all serve all memory of the host equally well, and nobody need ask where it is.
  bool differ() const { return differ_; }
  // All of them where nobody tells where the memory is, or where they are.
  core::RailMask to(const host::Place& memory) const;

 private:
  std::vector<host::Nic> nics_;
  host::Nodes nodes_;
  bool differ_ = false;
};

}  // namespace viaduct::move
