#include <fmt/format.h>

#include <utility>

#include "meet/groups/election.h"
#include "meet/groups/group_client.h"
#include "meet/place.h"
#include "meet/stored_place.h"

namespace viaduct::meet {
namespace groups {
namespace {

class EmbeddedGroups final : public GroupPlace {
 public:
  explicit EmbeddedGroups(SitePtr site) : site_(std::move(site)) {}
  Result<std::unique_ptr<Group>> join(const JoinRequest& request, Deadline until,
                                      const StopFlag& stop) override {
    auto group = std::make_unique<GroupClient>(site_);
    VIADUCT_CHECK(group->join(request, until, stop));
    return std::unique_ptr<Group>(std::move(group));
  }

 private:
  const SitePtr site_;
};

class ElectedGroups final : public GroupPlace {
 public:
  explicit ElectedGroups(std::shared_ptr<Electorate> electorate)
      : electorate_(std::move(electorate)) {}
  Result<std::unique_ptr<Group>> join(const JoinRequest& request, Deadline until,
                                      const StopFlag& stop) override {
    return joinElected(electorate_, request, clamped(until), stop);
  }

 private:
  const std::shared_ptr<Electorate> electorate_;
};

}  // namespace
}  // namespace groups

Result<std::unique_ptr<GroupPlace>> openGroupPlace(const PlaceOptions& options) {
  VIADUCT_TRY(const ChosenPlace chosen, choosePlace(options.where));
  PlaceOptions own = options;
  own.where = chosen.where;
  if (chosen.entry->name == "embedded") {
    VIADUCT_TRY(auto site, embedded::siteOf(own));
    return std::unique_ptr<GroupPlace>(std::make_unique<groups::EmbeddedGroups>(std::move(site)));
  }
  VIADUCT_TRY(auto place, chosen.entry->open(own));
  return std::unique_ptr<GroupPlace>(
      std::make_unique<groups::ElectedGroups>(std::make_shared<groups::Electorate>(
          std::move(place), options, fmt::format("{} {}", chosen.entry->name, chosen.where))));
}

}  // namespace viaduct::meet
