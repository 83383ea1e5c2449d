// One UCP worker with its one endpoint: everything that UCX has open for one rail of one life of
// one peer. When this is gone, so is every socket and queue behind it: nothing the peer has sent
// reaches memory here any more, and nothing here is read for it. Threads: under the agent's lock.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "backends/ucx/context.h"

namespace viaduct::ucx {

class Conduit {
 public:
  // Listens from now on; is not turned, and so does nothing, before join().
  static Result<std::unique_ptr<Conduit>> open(const Context& context);
  ~Conduit();
  Conduit(const Conduit&) = delete;
  Conduit& operator=(const Conduit&) = delete;

  const Bytes& address() const { return address_; }
  int fd() const { return fd_; }
  // The way to the peer's worker. Returns before it is known whether it leads there.
  Status join(const Bytes& peer);
  const std::vector<Transport>& lanes() const { return lanes_; }

  // Set once UCX has given the endpoint up.
  bool broken() const { return broken_ != UCS_OK; }
  Error whyBroken() const;
  void breakWith(ucs_status_t status) { broken_ = broken() ? broken_ : status; }

  // A peer's key, made ready for put() and get(); null: UCX will not have it. `generation` is of
  // the peer's pin; retire(): it will not be used again, and goes with the next sweep().
  ucp_rkey_h keyOf(std::uint32_t generation, const Bytes& packed);
  void retire(std::uint32_t generation);
  void sweep();  // while nothing is in flight

  // These four never block and leave nothing to free. False: no more now; try after progress().
  bool put(const void* from, std::size_t bytes, std::uint64_t to, ucp_rkey_h key) {
    return posted(ucx_.ucp_put_nbx(endpoint_, from, bytes, to, key, &params_));
  }
  bool get(void* into, std::size_t bytes, std::uint64_t from, ucp_rkey_h key) {
    return posted(ucx_.ucp_get_nbx(endpoint_, into, bytes, from, key, &params_));
  }
  bool progress() { return ucx_.ucp_worker_progress(worker_) != 0; }
  // True: fd() tells of the next event. False: turn it again first.
  bool arm() { return ucx_.ucp_worker_arm(worker_) == UCS_OK; }

  // All that was posted before will be visible at the other side once it has ended.
  struct Flush {
    void* request = nullptr;  // none: was over at once
  };
  Flush flush();
  bool ended(Flush& flush);  // sees to broken() as well
  void letGo(Flush& flush);  // of one that nobody waits for any more

 private:
  explicit Conduit(const Library& ucx) : ucx_(ucx) {}
  bool posted(ucs_status_ptr_t request) {
    if (request == nullptr) return true;
    if (UCS_PTR_IS_ERR(request)) return refused(UCS_PTR_STATUS(request));
    ucx_.ucp_request_free(request);  // it ends by itself, and the flush tells of it
    return true;
  }
  bool refused(ucs_status_t status);
  void readLanes();
  void closeEndpoint();
  static void failed(void* self, ucp_ep_h endpoint, ucs_status_t status);

  const Library& ucx_;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  ucp_request_param_t params_{};
  int fd_ = -1;  // UCX's own
  Bytes address_;
  std::vector<Transport> lanes_;
  ucs_status_t broken_ = UCS_OK;
  std::unordered_map<std::uint32_t, ucp_rkey_h> keys_;
  std::vector<ucp_rkey_h> retired_;
};

}  // namespace viaduct::ucx
