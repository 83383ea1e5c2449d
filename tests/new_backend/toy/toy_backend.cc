// A backend that never opens, and whose error names the settings that it was given.
#include <fmt/format.h>

#include "core/backend.h"
#include "facts.h"

namespace viaduct::toy {

Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context) {
  return Error{.code = Code::kUnsupported,
               .operation = "open toy",
               .detail = fmt::format("its speed is {}", speedOf(context.settings))};
}

std::string libraryVersion() { return "Toylib 1.0"; }

}  // namespace viaduct::toy
