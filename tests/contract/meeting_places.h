// The meeting places that the contract is run over: meeting_places.cc has a line for each.
#pragma once

#include <chrono>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "meet/place_options.h"

namespace viaduct::testing {

// One that runs, for as long as this lives.
class RunningPlace {
 public:
  virtual ~RunningPlace() = default;
  // How a member gets in.
  virtual meet::PlaceOptions options() const = 0;
};

struct PlaceKind {
  std::string name;
  // `detect`: when a silent member is dead. Nothing where such a place cannot run.
  std::unique_ptr<RunningPlace> (*start)(const std::string& token,
                                         std::chrono::milliseconds detect);
  friend std::ostream& operator<<(std::ostream& out, const PlaceKind& kind) {
    return out << kind.name;
  }
};
const std::vector<PlaceKind>& placeKinds();

}  // namespace viaduct::testing
