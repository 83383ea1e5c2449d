#include "backends/local/own_gate.h"

#include <map>
#include <vector>

#include "base/guarded.h"

namespace viaduct::local {
namespace {

using Doors = base::Guarded<std::map<Token, Door>>;
Doors& doors() {
  static Doors all;
  return all;
}

}  // namespace

OwnGate::TurnNumber OwnGate::withdraw() {
  look();
  wanted_ = turns_ + 1;
  if (over_ == turns_) turn();
  return wanted_;
}

void OwnGate::turn() {
  leaving_ = gate_->turn();
  ++turns_;
}

void OwnGate::look() {
  while (over_ != turns_ && gate_->left(leaving_)) {
    over_ = turns_;
    if (wanted_ != turns_) turn();
  }
}

bool OwnGate::left(TurnNumber turn) {
  look();
  return over_ >= turn || dead();
}

void OwnGate::fence() {
  fenced_ = true;
  gate_->fence();
}

bool OwnGate::settled() {
  if (fenced_) return gate_->empty() || dead();
  look();
  return over_ == wanted_ || dead();
}

void keepUntilSettled(std::shared_ptr<OwnGate> gate) {
  static base::Guarded<std::vector<std::shared_ptr<OwnGate>>> kept;
  kept.with([&](auto& gates) {
    std::erase_if(gates, [](const auto& one) { return one->settled(); });
    gates.push_back(std::move(gate));
  });
}

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
