#include <cstdint>
#include <string>
#include <utility>

#include "meet/embedded/directory_client.h"
#include "meet/embedded/site.h"

namespace viaduct::meet::embedded {
namespace {

class EmbeddedName final : public PublishedName {
 public:
  EmbeddedName(std::shared_ptr<DirectoryClient> names, std::uint32_t request)
      : names_(std::move(names)), request_(request) {}
  ~EmbeddedName() override { names_->withdraw(request_); }
  EmbeddedName(const EmbeddedName&) = delete;
  EmbeddedName& operator=(const EmbeddedName&) = delete;

 private:
  std::shared_ptr<DirectoryClient> names_;
  std::uint32_t request_;
};

class EmbeddedPlace final : public MeetingPlace {
 public:
  explicit EmbeddedPlace(SitePtr site)
      : names_(std::make_shared<DirectoryClient>(std::move(site))) {}

  Result<std::unique_ptr<PublishedName>> publish(const std::string& name, const std::string& value,
                                                 Deadline until) override {
    VIADUCT_TRY(const std::uint32_t request, names_->publish(name, value, until));
    return std::unique_ptr<PublishedName>(std::make_unique<EmbeddedName>(names_, request));
  }
  Result<std::string> find(const std::string& name, Deadline until, const StopFlag& stop) override {
    return names_->find(name, until, stop);
  }

 private:
  std::shared_ptr<DirectoryClient> names_;
};

}  // namespace

// Connects only in publish() and find().
Result<std::unique_ptr<MeetingPlace>> open(const PlaceOptions& options) {
  VIADUCT_TRY(auto site, siteOf(options));
  return std::unique_ptr<MeetingPlace>(std::make_unique<EmbeddedPlace>(std::move(site)));
}

}  // namespace viaduct::meet::embedded
