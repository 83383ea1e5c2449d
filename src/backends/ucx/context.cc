#include "backends/ucx/context.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "backends/ucx/message_endpoint.h"
#include "backends/ucx/rma_endpoint.h"
#include "move/fabric_message.h"

namespace viaduct::ucx {
namespace {

Status modify(const UcxLibrary& ucx, ucp_config_t* config, const char* name,
              const std::string& value) {
  if (value.empty()) return Ok{};
  const ucs_status_t status = ucx.ucp_config_modify(config, name, value.c_str());
  if (status == UCS_OK) return Ok{};
  return ucxError(Code::kInvalid, "ucp_config_modify " + std::string(name) + "=" + value, status);
}

// A setting that messages need, unless the user has set it. NOTES.md has the reasons.
struct Ours {
  const char* variable;
  const char* value;
  const char* bare = nullptr;  // the name without the transport, which UCX 1.13 and 1.14 know
  const char* unless = "";     // if the user has set this variable, ours must match: we set none
};
constexpr Ours kForMessages[] = {
    {"UCX_TCP_CONN_NB", "y", "CONN_NB"},
    {"UCX_TCP_TX_SEG_SIZE", "64k", "TX_SEG_SIZE", "UCX_TCP_RX_SEG_SIZE"},
    {"UCX_ZCOPY_THRESH", "inf"}};

// UCX 1.20.1 and newer refuse an unknown name. Older versions warn when a worker is created.
Status modify(const UcxLibrary& ucx, ucp_config_t* config, const Ours& one) {
  const char* const full = one.variable + std::string_view("UCX_").size();
  if (one.bare == nullptr) return modify(ucx, config, full, one.value);
  if (ucx.major == 1 && ucx.minor < 15) return modify(ucx, config, one.bare, one.value);
  // Some version from 1.15 on knows the full names, so both are tried.
  const Status bare = modify(ucx, config, one.bare, one.value);
  const Status whole = modify(ucx, config, full, one.value);
  return whole ? whole : bare;
}

Status apply(const UcxLibrary& ucx, ucp_config_t* config, const ContextOptions& choice) {
  VIADUCT_CHECK(modify(ucx, config, "TLS", choice.transports));
  VIADUCT_CHECK(modify(ucx, config, "NET_DEVICES", choice.devices));
  if (!choice.by_messages) return Ok{};
  for (const Ours& one : kForMessages)
    if (!userHasSet(one.variable) && !userHasSet(one.unless))
      VIADUCT_CHECK(modify(ucx, config, one));
  return Ok{};
}

}  // namespace

Result<std::unique_ptr<Context>> Context::open(const UcxLibrary& ucx,
                                               const ContextOptions& choice) {
  const LogCapture capture;
  std::unique_ptr<Context> out(new Context(ucx, choice));
  if (choice.by_messages) {
    VIADUCT_TRY(out->copy_, base::CheckedCopy::open());
  }
  ucp_config_t* config = nullptr;
  if (const ucs_status_t status = ucx.ucp_config_read(nullptr, nullptr, &config); status != UCS_OK)
    return ucxError(Code::kInvalid, "ucp_config_read", status);
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  // A context for messages has no puts and gets, so that a stranger's are not executed either.
  params.features = UCP_FEATURE_WAKEUP | (choice.by_messages ? UCP_FEATURE_AM : UCP_FEATURE_RMA);
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

std::uint64_t Context::memoryTypes() const {
  ucp_context_attr_t facts{};
  facts.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  return ucx_.ucp_context_query(handle_, &facts) == UCS_OK ? facts.memory_types : 0;
}

Context::~Context() {
  const LogCapture capture;
  if (handle_ != nullptr) ucx_.ucp_cleanup(handle_);
}

namespace {

class Registered final : public move::Registration {
 public:
  Registered(const Context& context, ucp_mem_h memory, move::Bytes key)
      : move::Registration(std::move(key)), context_(context), memory_(memory) {}
  ~Registered() override {
    const LogCapture capture;
    context_.ucx().ucp_mem_unmap(context_.handle(), memory_);
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

 private:
  const Context& context_;
  ucp_mem_h memory_;
};

// Memory for messages. It is listed in Reachable, and UCX does not know it.
class MessageRegistration final : public move::Registration {
 public:
  MessageRegistration(Reachable& among, std::uint64_t key)
      : move::Registration(base::Writer().put(key).take()), among_(among), key_(key) {}
  ~MessageRegistration() override { among_.drop(key_); }
  bool usable() const override { return among_.has(key_); }
  MessageRegistration(const MessageRegistration&) = delete;
  MessageRegistration& operator=(const MessageRegistration&) = delete;

 private:
  Reachable& among_;
  const std::uint64_t key_;
};

Result<move::Bytes> packed(const Context& context, ucp_mem_h memory) {
  const UcxLibrary& ucx = context.ucx();
  void* key = nullptr;
  std::size_t size = 0;
  if (const auto status = ucx.ucp_rkey_pack(context.handle(), memory, &key, &size);
      status != UCS_OK)
    return ucxError(Code::kDevice, "ucp_rkey_pack", status);
  const auto* const first = static_cast<const std::byte*>(key);
  move::Bytes out(first, first + size);
  ucx.ucp_rkey_buffer_release(key);
  if (out.size() <= move::kMaxKey) return out;
  return Error{
      .code = Code::kUnsupported, .operation = "ucp_rkey_pack", .detail = "a key too long"};
}

}  // namespace

Result<std::unique_ptr<move::Registration>> Context::add(const move::MemoryRange& range) const {
  if (reachable_) {
    VIADUCT_TRY(const std::uint64_t key, reachable_->add(range));
    return std::unique_ptr<move::Registration>(
        std::make_unique<MessageRegistration>(*reachable_, key));
  }
  const LogCapture capture;
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_PROT;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): MemoryRange has the address as a number
  params.address = reinterpret_cast<void*>(static_cast<std::uintptr_t>(range.address));
  params.length = range.bytes;
  params.prot = UCP_MEM_MAP_PROT_LOCAL_READ;
  if (range.writable) params.prot |= UCP_MEM_MAP_PROT_LOCAL_WRITE;
  if (range.remote_read) params.prot |= UCP_MEM_MAP_PROT_REMOTE_READ;
  if (range.remote_write) params.prot |= UCP_MEM_MAP_PROT_REMOTE_WRITE;
  ucp_mem_h memory = nullptr;
  if (const auto status = ucx_.ucp_mem_map(handle_, &params, &memory); status != UCS_OK)
    return ucxError(Code::kDevice, "ucp_mem_map", status);
  auto key = packed(*this, memory);
  if (!key) {
    ucx_.ucp_mem_unmap(handle_, memory);
    return std::move(key).error();
  }
  std::unique_ptr<move::Registration> out =
      std::make_unique<Registered>(*this, memory, std::move(*key));
  return out;
}

Result<std::unique_ptr<move::Endpoint>> Context::open() const {
  if (reachable_) {
    VIADUCT_TRY(auto endpoint, MessageEndpoint::open(*this, *reachable_));
    return std::unique_ptr<move::Endpoint>(std::move(endpoint));
  }
  VIADUCT_TRY(auto endpoint, RmaEndpoint::open(*this));
  return std::unique_ptr<move::Endpoint>(std::move(endpoint));
}

}  // namespace viaduct::ucx
