#include "backends/ofi/completion_queue.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace viaduct::ofi {
namespace {

// The kinds of descriptors to try, best first. FI_WAIT_POLLFD is a list of them: packets cost
// nothing while nobody sleeps. If a provider runs over another provider, libfabric loses events of
// the list (docs/gotchas/libfabric.md). The descriptor of `net` stays readable, so a sleeper would
// spin.
std::span<const fi_wait_obj> waitsOf(const OfiDomain& ofi_domain) {
  static constexpr std::array kAll{FI_WAIT_POLLFD, FI_WAIT_FD, FI_WAIT_NONE};
  if (ofi_domain.provider() == "net") return std::span(kAll).last(1);
  return ofi_domain.connects() ? std::span(kAll) : std::span(kAll).last(2);
}

constexpr std::size_t kFewDescriptors = 8;

}  // namespace

Result<std::unique_ptr<CompletionQueue>> CompletionQueue::open(const OfiDomain& ofi_domain,
                                                               fid_domain& domain) {
  std::unique_ptr<CompletionQueue> out(new CompletionQueue(ofi_domain));
  fi_cq_attr how{};
  how.size = ofi_domain.profile().depth;
  how.format = FI_CQ_FORMAT_CONTEXT;
  int rc = 0;
  for (const fi_wait_obj wait : waitsOf(ofi_domain)) {
    how.wait_obj = out->wait_ = wait;
    fid_cq* queue = nullptr;
    if (rc = fi_cq_open(&domain, &how, &queue, nullptr); rc != 0) continue;
    out->queue_.reset(queue);
    if (rc = out->listDescriptors(); rc == 0) break;
  }
  if (rc != 0) return ofiError(Code::kDevice, "fi_cq_open", rc, ofi_domain.device());
  return out;
}

// Reads the queue's descriptors from libfabric.
int CompletionQueue::listDescriptors() {
  if (wait_ == FI_WAIT_NONE) return 0;
  if (wait_ == FI_WAIT_FD) return fi_control(&queue_->fid, FI_GETWAIT, &own_);
  fi_wait_pollfd list{};
  int rc = 0;
  do {
    list_.resize(std::max(list.nfds, kFewDescriptors));
    list = {.change_index = 0, .nfds = list_.size(), .fd = list_.data()};
    rc = fi_control(&queue_->fid, FI_GETWAIT, &list);
  } while (rc == -FI_ETOOSMALL && list.nfds > list_.size());
  if (rc == 0) list_.resize(list.nfds);
  return rc;
}

// The descriptor of a listener's event queue leaves the epoll set when it is closed.
Status CompletionQueue::sleepOnThese(const RawEndpoint::EventQueues& events) {
  if (events.front() == nullptr || wait_ == FI_WAIT_NONE) return Ok{};
  set_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!set_) return systemError(Code::kExhausted, "epoll_create1", errno);
  if (own_ >= 0) VIADUCT_CHECK(watch(own_, EPOLLIN));
  for (fid_eq* const one : events) {
    int fd = -1;
    if (const int rc = fi_control(&one->fid, FI_GETWAIT, &fd); rc != 0)
      return ofiError(Code::kDevice, "fi_control", rc, ofi_domain_.device());
    VIADUCT_CHECK(watch(fd, EPOLLIN));
  }
  return Ok{};
}

Status CompletionQueue::watch(int fd, std::uint32_t events) {
  epoll_event event{.events = events, .data = {.fd = fd}};
  if (::epoll_ctl(set_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return systemError(Code::kExhausted, "epoll_ctl", errno);
  return Ok{};
}

bool CompletionQueue::arm(const RawEndpoint::EventQueues& events) {
  if (fd() < 0) return false;
  std::array<fid*, 1 + std::tuple_size_v<RawEndpoint::EventQueues>> sources{&queue_->fid};
  int count = 1;
  for (fid_eq* const one : events)
    if (one != nullptr) sources.at(static_cast<std::size_t>(count++)) = &one->fid;
  return fi_trywait(&ofi_domain_.fabric(), sources.data(), count) == FI_SUCCESS &&
         (wait_ != FI_WAIT_POLLFD || watchAll());
}

// Watches all descriptors of the queue. A descriptor that libfabric has closed meanwhile has left
// the epoll set by itself.
bool CompletionQueue::watchAll() {
  disarm();
  if (listDescriptors() != 0) return false;
  std::span<pollfd> all(list_);
  // libfabric signals changes of the list through the first descriptor, which may stay readable.
  // The list changes only in calls of the thread that runs this rail, which is this thread. So a
  // readable first descriptor can be left out.
  if (!all.empty() && ::poll(all.data(), 1, 0) != 0) all = all.subspan(1);
  for (const pollfd& one : all) {
    if (one.fd < 0) continue;
    // poll and epoll have the same event bits.
    if (!watch(one.fd, static_cast<std::uint32_t>(one.events))) return false;
    watched_.push_back(one.fd);
  }
  return true;
}

void CompletionQueue::disarm() {
  for (const int fd : watched_) ::epoll_ctl(set_.get(), EPOLL_CTL_DEL, fd, nullptr);
  watched_.clear();
}

}  // namespace viaduct::ofi
