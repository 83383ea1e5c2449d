#include "agent/finder.h"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/fields.h"
#include "base/log.h"
#include "base/net/crypto.h"
#include "meet/place.h"

namespace viaduct::agent {
namespace {

// The entry of an agent at its meeting place. The proof covers the Card with the agent's name,
// under the group's secret. Without a group's secret, the secret is that in the Card, and the proof
// proves nothing.
struct PublishedCard {
  base::Key proof = {};
  base::Bytes card = {};
};
auto fields(base::Is<PublishedCard> auto& e) { return std::tie(e.proof, e.card); }

// The entry of a parcel. The proof covers its name and the owner, under the group's secret. Without
// a group's secret the proof proves nothing.
struct PublishedOwner {
  base::Key proof = {};
  AnnouncedOwner owner = {};
};
auto fields(base::Is<PublishedOwner> auto& e) {
  return base::list(e.proof, base::line(meet::kMaxNameBytes, e.owner.agent), e.owner.id);
}

std::string entryOf(const std::string& parcel) { return "parcel/" + parcel; }

base::Key proofOf(std::span<const std::byte> card, const base::Key& secret) {
  return base::deriveKey(secret, "a published Card", card);
}

Error wrongEntry(const std::string& name, std::string detail) {
  return {.code = Code::kDenied,
          .operation = fmt::format("find \"{}\"", name),
          .detail = std::move(detail),
          .cause =
              "a program without the group's secret wrote the entry, or the agents have "
              "different secrets",
          .remedy =
              "give all agents the same secret, and find out which program writes to the "
              "meeting place"};
}

Status checkProof(const std::string& name, const base::Key& shown, const base::Key& expected) {
  if (base::sameBytes(std::as_bytes(std::span(shown)), std::as_bytes(std::span(expected))))
    return Ok{};
  return wrongEntry(name, "no agent of this group wrote the entry");
}

void sayWaiting(const std::string& line) { base::log(base::LogLevel::kWarning, "{}", line); }

}  // namespace

Result<std::unique_ptr<Finder>> Finder::open(const Settings& settings, Card mine, Deadline until) {
  std::unique_ptr<Finder> finder(new Finder(mine));
  meet::PlaceOptions options = meet::placeOptionsOf(settings.meet, settings);
  options.waiting = &sayWaiting;
  VIADUCT_TRY(finder->place_, meet::openMeetingPlace(options));
  finder->group_secret_ = !settings.secret.empty();
  // Members of a group with a secret know the secret already, so the entry leaves it out.
  if (finder->group_secret_) mine.secret = {};
  mine.pins.clear();  // the session announces the current pins
  PublishedCard entry{.card = mine.encode()};
  entry.proof = proofOf(entry.card, finder->mine_.secret);
  finder->packed_ = base::packed(entry);
  VIADUCT_CHECK(finder->publish(until));
  return finder;
}

void Finder::withdraw() {
  {
    const std::lock_guard lock(one_at_a_time_);
    entry_.reset();
  }
  const std::lock_guard lock(announcing_);
  for (auto& [parcel, announced] : announced_) announced.entry.reset();
}

Status Finder::publish(Deadline until) {
  VIADUCT_TRY(auto entry, place_->publish(mine_.name, packed_, until));
  {
    const std::lock_guard lock(one_at_a_time_);
    if (!stop_) entry_ = std::move(entry);
  }
  const std::lock_guard lock(announcing_);
  for (auto& [parcel, announced] : announced_) VIADUCT_CHECK(publish(parcel, announced, until));
  return Ok{};
}

void Finder::close() {
  stop_ = true;
  withdraw();
}

void Finder::abandon() {
  static_cast<void>(new auto(std::move(entry_)));
  static_cast<void>(new auto(std::move(announced_)));
  static_cast<void>(new auto(std::move(place_)));
}

Result<Card> Finder::find(const std::string& name, Deadline until) const {
  VIADUCT_TRY(const std::string found, place_->find(name, until, stop_));
  PublishedCard entry;
  if (!base::unpack(found, entry)) return wrongEntry(name, "the entry holds no Card");
  VIADUCT_TRY(Card card, Card::decode(entry.card));
  if (group_secret_) card.secret = mine_.secret;
  VIADUCT_CHECK(checkProof(name, entry.proof, proofOf(entry.card, card.secret)));
  if (card.name != name)
    return wrongEntry(name, fmt::format("the entry holds the Card of agent \"{}\"", card.name));
  return card;
}

base::Key Finder::proofOfOwner(const std::string& parcel, const AnnouncedOwner& owner) const {
  if (!group_secret_) return {};
  return base::deriveKey(mine_.secret, "an announced parcel",
                         base::encode(parcel, owner.agent, owner.id));
}

Status Finder::publish(const std::string& parcel, AnnouncedParcel& announced, Deadline until) {
  PublishedOwner entry{.owner = {mine_.name, mine_.agent}};
  entry.proof = proofOfOwner(parcel, entry.owner);
  VIADUCT_TRY(auto published, place_->publish(entryOf(parcel), base::packed(entry), until));
  if (!stop_) announced.entry = std::move(published);
  return Ok{};
}

Status Finder::announce(const std::string& parcel, Deadline until) {
  const std::lock_guard lock(announcing_);
  AnnouncedParcel& announced = announced_[parcel];
  ++announced.times;
  if (announced.times > 1) return Ok{};
  const Status published = publish(parcel, announced, until);
  if (!published) announced_.erase(parcel);
  return published;
}

void Finder::retract(const std::string& parcel) {
  const std::lock_guard lock(announcing_);
  const auto found = announced_.find(parcel);
  if (found != announced_.end() && --found->second.times == 0) announced_.erase(found);
}

Result<AnnouncedOwner> Finder::ownerOf(const std::string& parcel, Deadline until) const {
  VIADUCT_TRY(const std::string found, place_->find(entryOf(parcel), until, stop_));
  PublishedOwner entry;
  if (!base::unpack(found, entry)) return wrongEntry(entryOf(parcel), "the entry names no owner");
  VIADUCT_CHECK(checkProof(entryOf(parcel), entry.proof, proofOfOwner(parcel, entry.owner)));
  return entry.owner;
}

}  // namespace viaduct::agent
