// Calls to an API server of Kubernetes. A call is repeated until its deadline while the server is
// out of reach, overloaded or failing; refusals end it at once, with what to do. Threads: any,
// several at once; a call blocks its thread.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "meet/http/exchange.h"
#include "meet/kubernetes/access.h"
#include "meet/kubernetes/objects.h"
#include "meet/kubernetes/pace.h"
#include "meet/kubernetes/times.h"
#include "meet/wait.h"

namespace viaduct::meet::kubernetes {

// A request for Leases of the client's namespace.
struct LeaseRequest {
  const char* verb = "get";  // as a Role names it: the method follows from it
  std::string name = {};     // of one Lease; empty: of none, or of several
  std::string query = {};    // "limit=500&..."
  std::string body = {};
};

// An answer of 2xx, 404, 409 or 410. The caller knows what these mean for its request.
struct Answer {
  long status = 0;
  std::string body = {};
  std::optional<WallTime> date = {};  // of the server's clock, in whole seconds
};

class Client {
 public:
  // Loads libcurl. Connects to no server yet.
  static Result<std::shared_ptr<Client>> open(Access access);

  // Ends soon after `wait.until` at the latest.
  Result<Answer> call(const LeaseRequest& request, const Wait& wait, Pace& pace);

  // The end of a stream: an answer that is not 200 or 404; or a failure, after which another try
  // may succeed if `again`.
  struct StreamEnd {
    std::optional<Answer> answer = {};
    std::optional<Error> error = {};
    bool again = false;
  };
  // One try to read a stream over `channel`. CurlRequest explains `line` and `goes_on`.
  StreamEnd stream(const LeaseRequest& request, Channel& channel, Clock::time_point until,
                   std::function<bool(std::string_view)> line, std::function<bool()> goes_on);
  // The error of a refusal within a stream.
  StreamEnd streamEnd(const LeaseRequest& request, const Refusal& refusal) const;

  // This host's time, corrected if the server's clock is far from it. Readers compare it with the
  // server's clock, so the clocks of hosts do not matter.
  WallTime serverTime() const;

  const Access& access() const { return access_; }
  const std::string& text() const { return text_; }  // "kubernetes https://10.0.0.1:443"

 private:
  class Call;
  struct Verdict;

  explicit Client(Access access);
  Result<CurlRequest> curlRequest(const LeaseRequest& request) const;
  Verdict judge(const LeaseRequest& request, CurlAnswer& answer);
  Verdict judge(const LeaseRequest& request, const Refusal& refusal) const;
  void compareClocks(WallTime server);

  const Access access_;
  const std::string text_, path_;
  std::atomic<std::int64_t> clock_offset_us_ = 0;
  Channels channels_;
};

}  // namespace viaduct::meet::kubernetes
