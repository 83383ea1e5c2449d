#include "backends/ofi/conduit.h"

#include <fmt/format.h>
#include <rdma/fi_cm.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstring>

namespace viaduct::ofi {

using core::fabric::Flush;
using core::fabric::Piece;
using core::fabric::Posted;
using core::fabric::RemoteKey;

namespace {

// Of ours, before one of libfabric's own addresses.
constexpr std::uint32_t kAddressMark = 0x31614f56;  // "VOa1"
constexpr std::size_t kLongestName = 1024;
// Entries of the queue taken at once.
constexpr std::size_t kEntries = 64;
// An endpoint that has been connected and takes nothing for this long is not any more.
constexpr Duration kDeaf = std::chrono::milliseconds(500);
constexpr auto kGone = "the peer has closed the connection, or the path to it is down";

// `net` signals its descriptor without end: a sleeper would spin.
bool sleepsWell(const std::string& provider) { return provider != "net"; }

// Whether the provider may be given this address of a peer's: of the kind of our own, and whole. It
// reads as far as the kind says, whatever came over the wire.
bool fits(std::uint32_t format, std::span<const std::byte> theirs, const Bytes& ours) {
  if (theirs.empty() || theirs.size() > kLongestName) return false;
  if (format == FI_ADDR_STR) return theirs.back() == std::byte{0};
  const bool family = format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6;
  return theirs.size() == ours.size() &&
         (!family || std::memcmp(theirs.data(), ours.data(), sizeof(sa_family_t)) == 0);
}

}  // namespace

Result<std::unique_ptr<Conduit>> Conduit::open(const Ground& ground) {
  std::unique_ptr<Conduit> out(new Conduit(ground));
  VIADUCT_CHECK(out->openQueue());
  VIADUCT_CHECK(out->openEndpoint());
  VIADUCT_CHECK(out->readAddress());
  return out;
}

Status Conduit::openQueue() {
  fi_cq_attr how{};
  how.size = ground_.manner().depth;
  how.format = FI_CQ_FORMAT_CONTEXT;
  how.wait_obj = sleepsWell(ground_.provider()) ? FI_WAIT_FD : FI_WAIT_NONE;
  fid_cq* queue = nullptr;
  int rc = fi_cq_open(&ground_.domain(), &how, &queue, nullptr);
  if (rc == -FI_ENOSYS && how.wait_obj == FI_WAIT_FD) {
    how.wait_obj = FI_WAIT_NONE;
    rc = fi_cq_open(&ground_.domain(), &how, &queue, nullptr);
  }
  if (rc != 0) return ofiError(Code::kDevice, "fi_cq_open", rc, ground_.device());
  queue_.reset(queue);
  if (how.wait_obj == FI_WAIT_NONE) return Ok{};
  if (fi_control(&queue->fid, FI_GETWAIT, &fd_) != 0) fd_ = -1;
  return Ok{};
}

Status Conduit::openEndpoint() {
  fi_av_attr how{};
  how.type = ground_.info().domain_attr->av_type;
  how.count = 1;
  fid_av* peers = nullptr;
  if (const int rc = fi_av_open(&ground_.domain(), &how, &peers, nullptr); rc != 0)
    return ofiError(Code::kDevice, "fi_av_open", rc, ground_.device());
  peers_.reset(peers);
  fid_ep* endpoint = nullptr;
  if (const int rc = fi_endpoint(&ground_.domain(), &ground_.info(), &endpoint, nullptr); rc != 0)
    return ofiError(Code::kDevice, "fi_endpoint", rc, ground_.device());
  endpoint_.reset(endpoint);
  constexpr std::uint64_t kQueue = FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION;
  if (const int rc = fi_ep_bind(endpoint, &queue_->fid, kQueue); rc != 0)
    return ofiError(Code::kDevice, "fi_ep_bind", rc, ground_.device());
  if (const int rc = fi_ep_bind(endpoint, &peers->fid, 0); rc != 0)
    return ofiError(Code::kDevice, "fi_ep_bind", rc, ground_.device());
  if (const int rc = fi_enable(endpoint); rc != 0)
    return ofiError(Code::kDevice, "fi_enable", rc, ground_.device());
  orders_ = std::make_unique<Orders>(ground_.manner(), *endpoint);
  return Ok{};
}

Status Conduit::readAddress() {
  name_.resize(kLongestName);
  std::size_t bytes = name_.size();
  if (const int rc = fi_getname(&endpoint_->fid, name_.data(), &bytes); rc != 0)
    return ofiError(Code::kDevice, "fi_getname", rc, ground_.device());
  name_.resize(bytes);
  address_ = base::Writer()
                 .put(kAddressMark)
                 .text(ground_.provider())
                 .put(ground_.info().addr_format)
                 .sized(name_)
                 .take();
  return Ok{};
}

Status Conduit::join(const Bytes& peer) {
  const auto refuse = [this](std::string detail) {
    return Error{.code = Code::kProtocol,
                 .operation = "ofi join",
                 .detail = std::move(detail),
                 .device = ground_.device()};
  };
  base::Reader in(peer);
  const bool ours = in.get<std::uint32_t>() == kAddressMark;
  const std::string provider = in.text();
  const auto format = in.get<std::uint32_t>();
  const auto name = in.sized();
  if (!ours || !in.finished()) return refuse("the peer's address is not one");
  if (provider != ground_.provider())
    return refuse(fmt::format("the peer uses the provider {:.64}", provider));
  if (format != ground_.info().addr_format || !fits(format, name, name_))
    return refuse("the peer's address is of another kind, such as IPv6 against IPv4");
  fi_addr_t address = FI_ADDR_UNSPEC;
  if (const int got = fi_av_insert(peers_.get(), name.data(), 1, &address, 0, nullptr); got != 1)
    return ofiError(Code::kPeerLost, "fi_av_insert", got < 0 ? got : -FI_EINVAL, ground_.device());
  orders_->join(address);
  return Ok{};
}

RemoteKey Conduit::keyOf(std::uint32_t generation, const Bytes& packed) {
  if (const auto known = keys_.find(generation); known != keys_.end()) return &known->second;
  const auto key = unpacked(packed);
  return key ? &keys_.emplace(generation, *key).first->second : nullptr;
}

Posted Conduit::post(OpKind kind, std::span<const Piece> pieces, RemoteKey key) {
  if (broken_) return {};
  const Posted out = orders_->post(kind, pieces, *static_cast<const RemoteMemory*>(key));
  seeRefusal();
  if (out.pieces == 0 && connected_ && orders_->idle() && !broken_)
    judgeDeaf();
  else
    deaf_since_ = {};
  return out;
}

// A peer that goes while nothing is under way is told by nothing: its endpoint takes no orders from
// then on, though its queue is empty.
void Conduit::judgeDeaf() {
  const auto now = Clock::now();
  if (deaf_since_ == Clock::time_point{}) deaf_since_ = now;
  if (now - deaf_since_ < kDeaf) return;
  Error why = ofiError(Code::kPeerLost, "libfabric endpoint", -FI_EAGAIN, ground_.device());
  why.detail += " (it takes no orders, with none under way)";
  why.cause = kGone;
  breakWith(std::move(why));
}

void Conduit::seeRefusal() {
  if (orders_->refusal() != 0)
    breakWith(ofiError(Code::kPeerLost, "fi_writemsg or fi_readmsg", orders_->refusal(),
                       ground_.device()));
}

bool Conduit::ended(Flush& flush) {
  if (broken_ || !orders_->over(flush)) return false;
  letGo(flush);
  return true;
}

bool Conduit::progress() {
  if (broken_) return false;
  std::array<fi_cq_entry, kEntries> entries;
  const std::int64_t got = fi_cq_read(queue_.get(), entries.data(), entries.size());
  for (std::int64_t i = 0; i < got; ++i)
    orders_->ended(entries.at(static_cast<std::size_t>(i)).op_context);
  connected_ = connected_ || got > 0;
  if (got == -FI_EAVAIL)
    readError();
  else if (got < 0 && got != -FI_EAGAIN)
    breakWith(ofiError(Code::kDevice, "fi_cq_read", got, ground_.device()));
  if (!broken_) orders_->settle();
  seeRefusal();
  return got > 0 || broken_;
}

void Conduit::readError() {
  fi_cq_err_entry entry{};
  if (fi_cq_readerr(queue_.get(), &entry, 0) != 1) return;
  Error why = ofiError(Code::kPeerLost, "libfabric endpoint", -entry.err, ground_.device());
  std::array<char, 128> text{};
  const char* const said =
      fi_cq_strerror(queue_.get(), entry.prov_errno, entry.err_data, text.data(), text.size());
  if (said != nullptr && *said != '\0' && why.detail != said)
    why.detail += fmt::format(" ({})", said);
  why.cause = kGone;
  breakWith(std::move(why));
}

void Conduit::breakWith(Error why) {
  if (!broken_) broken_ = std::move(why);
}

bool Conduit::arm() {
  if (fd_ < 0 || broken_ || !orders_->settle()) return false;
  fid* one = &queue_->fid;
  return fi_trywait(&ground_.fabric(), &one, 1) == FI_SUCCESS;
}

}  // namespace viaduct::ofi
