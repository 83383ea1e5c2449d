// The backend's settings, resolved: endpoint, region, keys. Threads: pure, except that the
// credentials come from a file.
#pragma once

#include <viaduct/result.h>
#include <viaduct/settings.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "backends/object/object_name.h"
#include "backends/object/signature.h"

namespace viaduct::object {

struct Options {
  Endpoint endpoint = {};
  std::string region = {};
  std::uint64_t part = 0;  // bytes of one request
  std::uint32_t connections = 0, retries = 0;
  bool sign_bodies = false;
  std::string ca_file = {};  // empty: the system's
  Credentials credentials = {};
};
Result<Options> resolveOptions(const Settings& settings);

// The keys of one section of a credentials file. The error names the file and the section, and no
// line of the file.
Result<Credentials> credentialsIn(std::string_view text, std::string_view profile,
                                  const std::string& file);

}  // namespace viaduct::object
