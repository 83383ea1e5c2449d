// Publishes an agent's Card at its meeting place, and finds the Cards of other agents by name.
// Threads: any, without the agent's lock, since open() and find() block.
#pragma once

#include <viaduct/card.h>
#include <viaduct/deadline.h>
#include <viaduct/result.h>
#include <viaduct/settings.h>

#include <memory>
#include <mutex>
#include <string>

#include "meet/meeting.h"

namespace viaduct::agent {

class Finder {
 public:
  // Publishes the Card. An error if that fails or `until` has passed.
  static Result<std::unique_ptr<Finder>> open(const Settings& settings, Card mine, Deadline until);
  // Withdraws the Card, and publishes it again. publish() blocks, and fails if another agent has
  // taken the name.
  void withdraw();
  Status publish(Deadline until);
  // Withdraws the Card, and ends the calls of find() in other threads.
  void close();
  // In a fork()ed child: leaves the connection and the entry to the parent.
  void abandon();

  Result<Card> find(const std::string& name, Deadline until) const;

 private:
  explicit Finder(Card mine) : mine_(std::move(mine)) {}
  Card mine_;
  bool group_secret_ = false;  // if so, published Cards leave it out
  meet::StopFlag stop_{false};
  std::unique_ptr<meet::MeetingPlace> place_;
  std::string packed_;  // the entry
  std::mutex one_at_a_time_;
  std::unique_ptr<meet::PublishedName> entry_;  // null while withdrawn
};

}  // namespace viaduct::agent
