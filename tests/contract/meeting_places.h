// The meeting places that the contract tests: meeting_places.cc has a line for each.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "meet/place_options.h"

namespace viaduct::testing {

// A meeting place that runs as long as this object lives.
class RunningPlace {
 public:
  virtual ~RunningPlace() = default;
  // The options with which a member connects.
  virtual meet::PlaceOptions options() const = 0;
  // Kills the server, and starts it again at the same address. A kind of server that keeps nothing
  // comes back empty.
  virtual void kill() = 0;
  virtual void revive() = 0;
  // The requests that clients have sent; 0: the server does not count them.
  virtual std::uint64_t requests() { return 0; }
};

struct PlaceKind {
  std::string name;
  // `detect`: the silence after which a member is dead. Null: such a place cannot run here.
  std::unique_ptr<RunningPlace> (*start)(const std::string& token,
                                         std::chrono::milliseconds detect);
  std::size_t many_names;  // that one process publishes in a test
  friend std::ostream& operator<<(std::ostream& out, const PlaceKind& kind) {
    return out << kind.name;
  }
};
const std::vector<PlaceKind>& placeKinds();

}  // namespace viaduct::testing
