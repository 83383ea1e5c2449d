// Connections that a listener has accepted and that have not yet proved to know the secret. Their
// number is limited, so that descriptors remain for peers. Threads: one at a time.
#pragma once

#include <viaduct/deadline.h>

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <utility>

namespace viaduct::base {

class Unproven {
  struct Connection {
    int socket;
    Clock::time_point came;
    std::function<bool()> spoke = {};
    std::function<void()> drop = {};
  };
  // Oldest connection first in each list. A source is an address, the /64 network of an IPv6
  // address, or the user at the other end of a Unix socket.
  using Sources = std::map<std::string, std::list<Connection>>;

 public:
  // The share of one connection in the limit. The owner destroys it once the connection is proven
  // or closed, and before the Unproven.
  class Place {
   public:
    Place() = default;
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    Place(Place&& other) noexcept
        : room_(std::exchange(other.room_, nullptr)), source_(other.source_), at_(other.at_) {}
    Place& operator=(Place&& other) noexcept {
      leave();
      room_ = std::exchange(other.room_, nullptr);
      source_ = other.source_;
      at_ = other.at_;
      return *this;
    }
    ~Place() { leave(); }
    // `spoke`: whether the other end has sent bytes that a peer would send. `drop` closes the
    // socket, and destroys this place.
    void watch(std::function<bool()> spoke, std::function<void()> drop) {
      at_->spoke = std::move(spoke);
      at_->drop = std::move(drop);
    }
    void leave();

   private:
    friend class Unproven;
    Unproven* room_ = nullptr;
    Sources::iterator source_ = {};
    std::list<Connection>::iterator at_ = {};
  };

  // Room for an eighth of RLIMIT_NOFILE, but at least 16 and at most 1,024 connections.
  Unproven() : Unproven(shareOfDescriptors()) {}
  explicit Unproven(std::size_t room);
  Unproven(const Unproven&) = delete;
  Unproven& operator=(const Unproven&) = delete;
  ~Unproven() = default;
  static std::size_t shareOfDescriptors();

  std::size_t room() const { return room_; }
  std::size_t count() const { return count_; }
  bool full() const { return count_ >= room_; }

  Place admit(int socket, Clock::time_point now);

  // Drops one connection of the source with the most connections: the oldest whose time is up. A
  // flooding source thus loses its own connections. A connection that has sent bytes gets more time
  // than a silent one. Returns `now` after a drop, otherwise the time of the next try, and
  // time_point::max() without connections.
  Clock::time_point dropOne(Clock::time_point now);

 private:
  Clock::time_point mayGo(const Connection& connection) const;

  const std::size_t room_;
  const Duration silence_;  // the time that a connection may be silent
  Sources sources_;
  std::size_t count_ = 0;
};

}  // namespace viaduct::base
