// The holders of Leases that this process writes. Threads: any.
#pragma once

#include <string>

namespace viaduct::meet::kubernetes {

// A holder of one Lease. No other process, and no other claim of this process, has its text.
class Holder {
 public:
  Holder();
  ~Holder();
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  const std::string& text() const { return text_; }

 private:
  const std::string text_;
};

// Whether this process wrote the holder.
bool isOwnHolder(const std::string& text);
// Whether this process wrote the holder for a claim that it has given up: the answer was lost, or
// the server was out of reach at the end.
bool isGivenUp(const std::string& text);

}  // namespace viaduct::meet::kubernetes
