#include <utility>

#include "meet/groups/election.h"
#include "meet/groups/group_client.h"
#include "meet/place.h"

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

class EtcdGroups final : public GroupPlace {
 public:
  explicit EtcdGroups(etcd::EtcdSite site)
      : electorate_(std::make_shared<Electorate>(std::move(site))) {}
  Result<std::unique_ptr<Group>> join(const JoinRequest& request, Deadline until,
                                      const StopFlag& stop) override {
    return joinElected(electorate_, request, etcd::clamped(until), stop);
  }

 private:
  const std::shared_ptr<Electorate> electorate_;
};

}  // namespace
}  // namespace groups

Result<std::unique_ptr<GroupPlace>> openGroupPlace(const PlaceOptions& options) {
  VIADUCT_TRY(ChosenPlace chosen, choosePlace(options.where));
  PlaceOptions own = options;
  own.where = std::move(chosen.where);
  if (chosen.entry->name != "embedded") {
    VIADUCT_TRY(auto site, etcd::siteOf(own));
    return std::unique_ptr<GroupPlace>(std::make_unique<groups::EtcdGroups>(std::move(site)));
  }
  VIADUCT_TRY(auto site, embedded::siteOf(own));
  return std::unique_ptr<GroupPlace>(std::make_unique<groups::EmbeddedGroups>(std::move(site)));
}

}  // namespace viaduct::meet
