#include "nixl/c/call.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/log.h"

namespace viaduct::nixl::c {

Status statusOf(const std::exception* caught, Failures failures) noexcept try {
  // A program that polls a failed transfer gets one line.
  static thread_local std::string last;
  const std::string text = caught == nullptr ? "an unknown exception" : caught->what();
  if (text != last) base::log(base::LogLevel::kWarning, "nixl: {}", text);
  last = text;
  const auto* const failure = dynamic_cast<const Failure*>(caught);
  if (failures == Failures::kBackend || failure == nullptr) return NIXL_CAPI_ERROR_BACKEND;
  switch (failure->outcome()) {
    case Outcome::kInvalid:
      return NIXL_CAPI_ERROR_INVALID_PARAM;
    case Outcome::kNotFound:
      return NIXL_CAPI_ERROR_NOT_FOUND;
    case Outcome::kNoTelemetry:
      return NIXL_CAPI_ERROR_NO_TELEMETRY;
    default:
      return NIXL_CAPI_ERROR_BACKEND;
  }
} catch (...) {  // out of memory
  return NIXL_CAPI_ERROR_BACKEND;
}

void* copied(std::string_view bytes) {
  if (bytes.empty()) return nullptr;
  void* const memory = std::malloc(bytes.size());
  if (memory == nullptr) throw std::bad_alloc();
  return std::memcpy(memory, bytes.data(), bytes.size());
}

std::string bytesAt(const void* data, std::size_t length) {
  if (data == nullptr && length != 0)
    fail(Outcome::kInvalid, "the data is NULL and its length is not 0; pass both, or NULL and 0");
  return length == 0 ? std::string() : std::string(static_cast<const char*>(data), length);
}

Memory memoryOf(MemType type) {
  if (type < NIXL_CAPI_MEM_DRAM || type >= NIXL_CAPI_MEM_UNKNOWN)
    fail(Outcome::kInvalid, "the kind of memory is unknown; pass DRAM, VRAM, OBJECT or FILE");
  return static_cast<Memory>(type);
}

std::shared_ptr<OwnedAgent> OwnedAgent::open(const std::string& name, const AgentConfig& config) {
  auto owned = std::make_shared<OwnedAgent>();
  {
    const std::lock_guard held(owned->lock_.mutex);
    owned->agent_ = std::make_unique<NixlAgent>(name, config.capture_telemetry, owned->lock_);
  }
  owned->exchange_ = std::make_unique<Exchange>([weak = std::weak_ptr(owned)](const auto& call) {
    if (const auto self = weak.lock()) call(*self->locked());
  });
  if (!config.enable_listen_thread) return owned;
  const auto port =
      valueOf(owned->exchange_->listen(static_cast<std::uint16_t>(config.listen_port)));
  base::log(config.listen_port == 0 ? base::LogLevel::kInfo : base::LogLevel::kDebug,
            "MD listener is listening on port {}", port);
  return owned;
}

}  // namespace viaduct::nixl::c
