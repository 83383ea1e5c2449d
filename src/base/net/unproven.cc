#include "base/net/unproven.h"

#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/net/address.h"

namespace viaduct::base {
namespace {

// The part of this process's descriptors for unproven connections. Three flooded listeners then
// leave more than half of the descriptors.
constexpr rlim_t kShare = 8;
constexpr std::size_t kLeastRoom = 16, kMostRoom = 1024;
// The highest rate at which a full listener drops silent connections, per second. A peer behind
// 2,000 silent connections waits a quarter of a second.
constexpr std::size_t kTurnover = 8000;
constexpr Duration kLeastSilence = std::chrono::milliseconds(4);
// The time for a proof, which suffices on a busy machine or across an ocean.
constexpr Duration kProofTime = std::chrono::milliseconds(500);
constexpr std::size_t kNetworkBytes = 8;  // of an IPv6 address: one subscriber owns the rest

template <class T>
std::string bytesOf(const T& value, std::size_t bytes = sizeof(T)) {
  return {reinterpret_cast<const char*>(&value), bytes};
}

// A socket that is closed already has the empty source.
std::string sourceOf(int socket) {
  const auto remote = remoteAddress(socket);
  if (!remote) return {};
  if (remote->family() == AF_UNIX) {
    ucred who{};
    socklen_t size = sizeof who;
    return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0
               ? "user" + bytesOf(who.uid)
               : std::string();
  }
  if (remote->family() == AF_INET6)
    return bytesOf(reinterpret_cast<const sockaddr_in6*>(&remote->storage)->sin6_addr,
                   kNetworkBytes);
  return bytesOf(reinterpret_cast<const sockaddr_in*>(&remote->storage)->sin_addr);
}

}  // namespace

std::size_t Unproven::shareOfDescriptors() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return kLeastRoom;
  return static_cast<std::size_t>(
      std::clamp<rlim_t>(files.rlim_cur / kShare, kLeastRoom, kMostRoom));
}

Unproven::Unproven(std::size_t room)
    : room_(room),
      silence_(
          std::max<Duration>(kLeastSilence, std::chrono::milliseconds(1000 * room / kTurnover))) {}

Unproven::Place Unproven::admit(int socket, Clock::time_point now) {
  const auto source = sources_.try_emplace(sourceOf(socket)).first;
  source->second.push_back({.socket = socket, .came = now});
  ++count_;
  Place place;
  place.room_ = this;
  place.source_ = source;
  place.at_ = std::prev(source->second.end());
  return place;
}

void Unproven::Place::leave() {
  Unproven* const room = std::exchange(room_, nullptr);
  if (room == nullptr) return;
  source_->second.erase(at_);
  if (source_->second.empty()) room->sources_.erase(source_);
  --room->count_;
}

Clock::time_point Unproven::dropOne(Clock::time_point now) {
  const auto largest =
      std::max_element(sources_.begin(), sources_.end(), [](const auto& one, const auto& other) {
        return std::pair(one.second.size(), other.second.front().came) <
               std::pair(other.second.size(), one.second.front().came);
      });
  if (largest == sources_.end()) return Clock::time_point::max();
  auto when = Clock::time_point::max();
  for (Connection& one : largest->second) {
    when = std::min(when, mayGo(one));
    if (when > now) continue;
    const auto drop = std::move(one.drop);  // destroys `one`
    drop();
    return now;
  }
  return when + silence_ / 4;  // a little later, when more connections may go
}

// Returns when the connection may be dropped. Unread bytes count as spoken, because a peer speaks
// first: bytes that it sent before the accept are readable at once.
Clock::time_point Unproven::mayGo(const Connection& connection) const {
  int unread = 0;
  const bool spoke =
      connection.spoke() || (::ioctl(connection.socket, FIONREAD, &unread) == 0 && unread > 0);
  return connection.came + (spoke ? kProofTime : silence_);
}

}  // namespace viaduct::base
