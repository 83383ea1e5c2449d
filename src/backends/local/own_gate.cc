#include "backends/local/own_gate.h"

#include <map>

#include "base/guarded.h"

namespace viaduct::local {
namespace {

using Doors = base::Guarded<std::map<Token, Door>>;
Doors& doors() {
  static Doors all;
  return all;
}

}  // namespace

void offerDoor(const Token& token, Door door) {
  doors().with([&](auto& all) { all.insert_or_assign(token, std::move(door)); });
}

void withdrawDoor(const Token& token) {
  doors().with([&](auto& all) { all.erase(token); });
}

std::optional<Door> findDoor(const Token& token) {
  return doors().with([&](auto& all) -> std::optional<Door> {
    const auto found = all.find(token);
    if (found == all.end()) return std::nullopt;
    return found->second;
  });
}

}  // namespace viaduct::local
