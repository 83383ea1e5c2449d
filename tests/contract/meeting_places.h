// The meeting places that the contract tests: meeting_places.cc has a line for each.
#pragma once

#include <chrono>
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
};

struct PlaceKind {
  std::string name;
  // `detect`: the silence after which a member is dead. Null: such a place cannot run here.
  std::unique_ptr<RunningPlace> (*start)(const std::string& token,
                                         std::chrono::milliseconds detect);
  friend std::ostream& operator<<(std::ostream& out, const PlaceKind& kind) {
    return out << kind.name;
  }
};
const std::vector<PlaceKind>& placeKinds();

}  // namespace viaduct::testing
