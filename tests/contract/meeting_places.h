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
  // The options for a place of the same kind at another address, "127.0.0.1:port". Do not call
  // options() afterwards.
  virtual meet::PlaceOptions optionsAt(const std::string& address) = 0;
  // kill() ends the server, and revive() starts it again at the same address. After forget(), or if
  // it keeps no data, the server comes back empty.
  virtual void kill() = 0;
  virtual void forget() {}  // after kill()
  virtual void revive() = 0;
  // The requests that clients have sent since the server was started last.
  virtual std::uint64_t requests() = 0;
};

struct PlaceKind {
  std::string name;
  // `detect`: the silence after which a member is dead. Null: such a place cannot run here.
  std::unique_ptr<RunningPlace> (*start)(const std::string& token,
                                         std::chrono::milliseconds detect);
  std::size_t most_value;      // bytes
  std::chrono::seconds lease;  // without a sign of life, a name is free after this time
  double longest_pause;        // of a client that cannot reach the server, in seconds
  // True: a client may send so few requests that a test with many would take long.
  bool slow = false;
  friend std::ostream& operator<<(std::ostream& out, const PlaceKind& kind) {
    return out << kind.name;
  }
};
const std::vector<PlaceKind>& placeKinds();

}  // namespace viaduct::testing
