#include "agent/finder.h"

#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/log.h"
#include "meet/place.h"

namespace viaduct::agent {
namespace {

void sayWaiting(const std::string& line) { base::log(base::LogLevel::kWarning, "{}", line); }

}  // namespace

Result<std::unique_ptr<Finder>> Finder::open(const Settings& settings, Card mine, Deadline until) {
  std::unique_ptr<Finder> finder(new Finder(mine));
  VIADUCT_TRY(finder->place_, meet::openMeetingPlace({.where = settings.meet,
                                                      .token = settings.secret,
                                                      .name_space = settings.name_space,
                                                      .user = settings.meet_user,
                                                      .password = settings.meet_password,
                                                      .ca_file = settings.meet_ca,
                                                      .certificate_file = settings.meet_certificate,
                                                      .key_file = settings.meet_key,
                                                      .detect = settings.detect,
                                                      .waiting = &sayWaiting}));
  finder->group_secret_ = !settings.secret.empty();
  // Members of a group with a secret know it already, so it does not travel.
  if (finder->group_secret_) mine.secret = {};
  mine.pins.clear();  // the session announces the current pins
  VIADUCT_TRY(finder->entry_,
              finder->place_->publish(mine.name, std::string(base::textOf(mine.encode())), until));
  return finder;
}

void Finder::close() {
  stop_ = true;
  entry_.reset();
}

void Finder::abandon() {
  static_cast<void>(new auto(std::move(entry_)));
  static_cast<void>(new auto(std::move(place_)));
}

Result<Card> Finder::find(const std::string& name, Deadline until) const {
  VIADUCT_TRY(const std::string blob, place_->find(name, until, stop_));
  VIADUCT_TRY(Card card, Card::decode(base::bytesOf(blob)));
  if (group_secret_) card.secret = mine_.secret;
  return card;
}

}  // namespace viaduct::agent
