// Publishes an agent's Card at its meeting place, and the names of its parcels. Finds the Cards of
// other agents by name, and the owners of parcels. Threads: any, without the agent's lock, since
// most calls block.
#pragma once

#include <viaduct/card.h>
#include <viaduct/deadline.h>
#include <viaduct/result.h>
#include <viaduct/settings.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/net/crypto.h"
#include "meet/meeting.h"

namespace viaduct::agent {

// The agent that decides about a parcel. After a restart of the agent, the id is another.
struct AnnouncedOwner {
  std::string agent = {};
  std::array<std::uint8_t, 16> id = {};
};

class Finder {
 public:
  // Publishes the Card. An error if that fails or `until` has passed.
  static Result<std::unique_ptr<Finder>> open(const Settings& settings, Card mine, Deadline until);
  // Withdraws the Card and the names of parcels, and publishes them again. publish() fails if
  // another agent has taken a name.
  void withdraw();
  Status publish(Deadline until);
  // Withdraws the Card, and ends the calls of find() in other threads.
  void close();
  // In a fork()ed child: leaves the connection and the entry to the parent.
  void abandon();

  Result<Card> find(const std::string& name, Deadline until) const;

  // Publishes that this agent decides about parcels of that name, until retract() has been called
  // as often for the name.
  Status announce(const std::string& parcel, Deadline until);
  void retract(const std::string& parcel);
  // Waits for a parcel of that name up to `until`.
  Result<AnnouncedOwner> ownerOf(const std::string& parcel, Deadline until) const;

 private:
  struct AnnouncedParcel {
    std::size_t times = 0;
    std::unique_ptr<meet::PublishedName> entry = {};  // null while withdrawn
  };
  explicit Finder(Card mine) : mine_(std::move(mine)) {}
  Status publish(const std::string& parcel, AnnouncedParcel& announced, Deadline until);
  base::Key proofOfOwner(const std::string& parcel, const AnnouncedOwner& owner) const;
  Card mine_;
  bool group_secret_ = false;  // if so, published Cards leave it out
  meet::StopFlag stop_{false};
  std::unique_ptr<meet::MeetingPlace> place_;
  std::string packed_;  // the encoded entry of the Card
  std::mutex one_at_a_time_;
  std::unique_ptr<meet::PublishedName> entry_;  // null while withdrawn
  // Held while the place answers, so that two parcels of one name share an entry.
  std::mutex announcing_;
  std::map<std::string, AnnouncedParcel> announced_;
};

}  // namespace viaduct::agent
