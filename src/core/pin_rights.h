// The rights of peers to the pins of this agent. Threads: const calls while rails run, several at
// once; all else while they are stopped.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace viaduct::core {

// The sessions whose peers may reach a pin. The agent's own ops may always use it.
class Audience {
 public:
  static constexpr Audience everybody() { return Audience(kEverybody); }
  static constexpr Audience nobody() { return Audience(kNobody); }
  static constexpr Audience only(std::uint64_t session) { return Audience(session); }

  bool has(std::uint64_t session) const { return session_ == kEverybody || session_ == session; }
  bool isEverybody() const { return session_ == kEverybody; }
  friend auto operator<=>(const Audience&, const Audience&) = default;

 private:
  static constexpr std::uint64_t kEverybody = 0, kNobody = ~std::uint64_t{0};
  explicit constexpr Audience(std::uint64_t session) : session_(session) {}
  std::uint64_t session_;
};

// Whether a peer may read and write a pin.
struct PinRight {
  bool read = false, write = false;
  bool any() const { return read || write; }
  friend bool operator==(const PinRight&, const PinRight&) = default;
};

// The rights of the peer of one session. A peer without limits has all rights to the pins of its
// audience. A limited peer has the right that its card grants it to each single pin.
class PinRights {
 public:
  explicit PinRights(std::uint64_t session = 0, bool limited = false)
      : session_(session), limited_(limited) {}

  std::uint64_t session() const { return session_; }
  bool isLimited() const { return limited_; }
  // The right to the pin in this slot, which has this audience.
  PinRight to(std::uint32_t slot, const Audience& audience) const {
    if (!audience.has(session_)) return {};
    // A pin for this session alone is the library's own, so the card's limits do not hold for it.
    if (!limited_ || !audience.isEverybody()) return {true, true};
    return slot < granted_.size() ? granted_[slot] : PinRight{};
  }

  void grant(std::uint32_t slot, PinRight right) {
    if (slot >= granted_.size()) granted_.resize(std::size_t{slot} + 1);
    granted_[slot] = right;
  }

 private:
  std::uint64_t session_;
  bool limited_;
  std::vector<PinRight> granted_;  // by slot
};

}  // namespace viaduct::core
