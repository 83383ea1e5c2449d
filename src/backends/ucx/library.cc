#include "backends/ucx/library.h"

#include <fmt/format.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/kept_signals.h"
#include "base/shared_library.h"
#include "base/under_tsan.h"

namespace viaduct::ucx {
namespace {

thread_local int capturing = 0;
thread_local std::string said;

ucs_log_func_rc_t keep(const char*, unsigned, const char*, ucs_log_level_t level,
                       const ucs_log_component_config_t*, const char* message, va_list arguments) {
  // UCX prints fatal errors itself, because it aborts afterwards.
  if (capturing == 0 || level == UCS_LOG_LEVEL_FATAL) return UCS_LOG_FUNC_RC_CONTINUE;
  std::array<char, 512> line{};
  const int length = std::vsnprintf(line.data(), line.size(), message, arguments);
  if (length > 0 && said.size() < line.size())
    said += (said.empty() ? "" : "; ") + std::string(line.data());
  return UCS_LOG_FUNC_RC_STOP;
}

// True: the user has configured UCX's signal handlers, so they stay.
bool signalsAreTheUsers() {
  for (const char* theirs : {"UCX_HANDLE_ERRORS", "UCX_ERROR_SIGNALS", "UCX_DEBUG_SIGNO"})
    if (userHasSet(theirs)) return true;
  return false;
}

Error cannotLoad(std::string detail) {
  return {
      .code = Code::kUnsupported,
      .operation = "load libucp.so.0",
      .detail = std::move(detail),
      .device = "ucx",
      .cause = "UCX is not installed, or is older than the UCX of this build",
      .remedy = fmt::format(
          "install UCX {}.{} or newer (Debian and Ubuntu: libucx0), or omit ucx from the backends",
          UCP_API_MAJOR, UCP_API_MINOR)};
}

Result<UcxLibrary> load() {
  // UCX takes over SIGHUP, SIGSEGV, SIGBUS, SIGFPE and SIGILL when it is loaded.
  std::optional<base::KeptSignals> kept;
  if (!signalsAreTheUsers()) kept.emplace();
#ifdef VIADUCT_TSAN
  // Otherwise an ending thread crashes in UCX's hook of madvise: docs/gotchas/sanitizers.md.
  ::setenv("UCX_MEM_EVENTS", "no", 0);
#endif
  const auto file = base::SharedLibrary::open("libucp.so.0");
  if (!base::loadsLibraries()) return file.error();
  if (!file) return cannotLoad(file.error().detail);
  UcxLibrary out;
#define VIADUCT_UCX_BIND(name) \
  if (!file->bind(#name, out.name)) return cannotLoad("it has no " #name);
  VIADUCT_UCX_FUNCTIONS(VIADUCT_UCX_BIND)
#undef VIADUCT_UCX_BIND
  unsigned release = 0;
  out.ucp_get_version(&out.major, &out.minor, &release);
  if (out.major != UCP_API_MAJOR || out.minor < UCP_API_MINOR)
    return cannotLoad(fmt::format("this is {}; built with {}.{}", out.ucp_get_version_string(),
                                  UCP_API_MAJOR, UCP_API_MINOR));
  out.version = fmt::format("{}.{}.{}", out.major, out.minor, release);
  out.ucs_log_push_handler(&keep);
  return out;
}

}  // namespace

Result<const UcxLibrary*> library() {
  static const Result<UcxLibrary> the_library = load();
  if (!the_library) return the_library.error();
  return &*the_library;
}

std::string libraryVersion() {
  const auto ucx = library();
  return ucx ? "UCX " + (*ucx)->version : "UCX: " + ucx.error().detail;
}

Error ucxError(Code code, std::string operation, ucs_status_t status) {
  const auto ucx = library();
  std::string detail = ucx ? (*ucx)->ucs_status_string(status) : "UCX is not there";
  if (!said.empty()) detail += fmt::format(" ({})", std::exchange(said, {}));
  return {.code = code,
          .operation = std::move(operation),
          .detail = std::move(detail),
          .device = "ucx"};
}

LogCapture::LogCapture() {
  if (capturing++ == 0) said.clear();
}
LogCapture::~LogCapture() { --capturing; }

bool userHasSet(const char* variable) { return std::getenv(variable) != nullptr; }

std::string settingInForce(const UcxLibrary& ucx, const std::string& variable) {
  const LogCapture capture;
  ucp_config_t* config = nullptr;
  if (ucx.ucp_config_read(nullptr, nullptr, &config) != UCS_OK) return {};
  const std::string all = "\n" + printed([&](std::FILE* file) {
                            ucx.ucp_config_print(config, file, nullptr, UCS_CONFIG_PRINT_CONFIG);
                          });
  ucx.ucp_config_release(config);
  const auto line = all.find("\n" + variable + "=");
  if (line == std::string::npos) return {};
  const auto value = line + variable.size() + 2;
  return all.substr(value, all.find('\n', value) - value);
}

}  // namespace viaduct::ucx
