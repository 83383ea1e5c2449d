// The meeting places of this build, and the choice of one by its address. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "meet/meeting.h"
#include "meet/place_options.h"

namespace viaduct::meet {

// One folder under meet/.
struct PlaceEntry {
  std::string_view name;
  std::span<const std::string_view> schemes;  // without the colon
  bool plain;                                 // also takes an address without a scheme
  Result<std::unique_ptr<MeetingPlace>> (*open)(const PlaceOptions&);
};
// The list of all places, which the build generates.
std::span<const PlaceEntry> placeCatalogue();

// The place that an address names.
struct ChosenPlace {
  const PlaceEntry* entry = nullptr;
  std::string where = {};  // the address without its scheme; a URL ("http://...") is unchanged
};
// Fails for an unknown scheme. The place itself checks the rest of the address.
Result<ChosenPlace> choosePlace(const std::string& where);

// Fails at once for malformed options, and connects to no server yet. A child of fork() opens its
// own place.
Result<std::unique_ptr<MeetingPlace>> openMeetingPlace(const PlaceOptions& options);

}  // namespace viaduct::meet
