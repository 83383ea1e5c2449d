// An agent at its meeting place: published under its name, finding others by theirs. Threads: any;
// not with the agent's lock held, since both calls wait.
#pragma once

#include <viaduct/card.h>
#include <viaduct/deadline.h>
#include <viaduct/result.h>
#include <viaduct/settings.h>

#include <memory>
#include <string>

#include "meet/meeting.h"

namespace viaduct::agent {

class Finder {
 public:
  // The entry stands when this returns: by `until`, or there is an error.
  static Result<std::unique_ptr<Finder>> open(const Settings& settings, Card mine, Deadline until);
  // Takes the entry away and ends the waits of others.
  void close();
  // In a fork()ed child: what is there belongs to the parent.
  void abandon();

  Result<Card> find(const std::string& name, Deadline until) const;

 private:
  explicit Finder(Card mine) : mine_(std::move(mine)) {}
  Card mine_;
  bool group_secret_ = false;  // then no Card that is published holds it
  meet::StopFlag stop_{false};
  std::unique_ptr<meet::MeetingPlace> place_;
  std::unique_ptr<meet::PublishedName> entry_;
};

}  // namespace viaduct::agent
