#include "backends/ucx/context.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace viaduct::ucx {
namespace {

Status modify(const Library& ucx, ucp_config_t* config, const char* name,
              const std::string& value) {
  if (value.empty()) return Ok{};
  const ucs_status_t status = ucx.ucp_config_modify(config, name, value.c_str());
  if (status == UCS_OK) return Ok{};
  return ucxError(Code::kInvalid, "ucp_config_modify " + std::string(name) + "=" + value, status);
}

Status apply(const Library& ucx, ucp_config_t* config, const Choice& choice) {
  VIADUCT_CHECK(modify(ucx, config, "TLS", choice.transports));
  VIADUCT_CHECK(modify(ucx, config, "NET_DEVICES", choice.devices));
  // Of the tcp transport; with the variable's own prefix 1.13 does not find it.
  return modify(ucx, config, "CONN_NB", choice.connect_later ? "y" : "");
}

}  // namespace

Result<std::unique_ptr<Context>> Context::open(const Library& ucx, const Choice& choice) {
  const Hush hush;
  ucp_config_t* config = nullptr;
  if (const ucs_status_t status = ucx.ucp_config_read(nullptr, nullptr, &config); status != UCS_OK)
    return ucxError(Code::kInvalid, "ucp_config_read", status);
  std::unique_ptr<Context> out(new Context(ucx));
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP;
  const Status applied = apply(ucx, config, choice);
  const ucs_status_t status =
      applied ? ucx.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &out->handle_)
              : UCS_ERR_INVALID_PARAM;
  ucx.ucp_config_release(config);
  VIADUCT_CHECK(applied);
  if (status != UCS_OK) {
    out->handle_ = nullptr;
    return ucxError(Code::kUnsupported, "ucp_init", status);
  }
  out->resources_ = resourcesIn(
      printed([&](std::FILE* file) { ucx.ucp_context_print_info(out->handle_, file); }));
  return out;
}

Context::~Context() {
  const Hush hush;
  if (handle_ != nullptr) ucx_.ucp_cleanup(handle_);
}

Result<Registration> Registration::make(const Context& context, std::uint64_t address,
                                        std::uint64_t bytes) {
  const Hush hush;
  const Library& ucx = context.ucx();
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): what is to be registered comes as a number
  params.address = reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
  params.length = bytes;
  Registration out;
  if (const auto status = ucx.ucp_mem_map(context.handle(), &params, &out.memory_);
      status != UCS_OK)
    return ucxError(Code::kDevice, "ucp_mem_map", status);
  out.context_ = &context;
  void* packed = nullptr;
  std::size_t size = 0;
  if (const auto status = ucx.ucp_rkey_pack(context.handle(), out.memory_, &packed, &size);
      status != UCS_OK)
    return ucxError(Code::kDevice, "ucp_rkey_pack", status);
  const auto* const first = static_cast<const std::byte*>(packed);
  out.key_.assign(first, first + size);
  ucx.ucp_rkey_buffer_release(packed);
  if (out.key_.size() > kMaxKey)
    return Error{
        .code = Code::kUnsupported, .operation = "ucp_rkey_pack", .detail = "a key too long"};
  return out;
}

Registration::Registration(Registration&& other) noexcept
    : context_(std::exchange(other.context_, nullptr)),
      memory_(std::exchange(other.memory_, nullptr)),
      key_(std::move(other.key_)) {}

Registration& Registration::operator=(Registration&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(memory_, other.memory_);
  std::swap(key_, other.key_);
  return *this;
}

Registration::~Registration() {
  if (context_ == nullptr) return;
  const Hush hush;
  context_->ucx().ucp_mem_unmap(context_->handle(), memory_);
}

}  // namespace viaduct::ucx
