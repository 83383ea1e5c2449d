// Exchanges metadata between agents over TCP: a listener, and calls to other agents' listeners.
//
// In a call, the listener sends a magic and 16 random bytes. The caller sends one frame, and the
// listener answers with one frame. A frame has a kind, the length of its content, the content, and
// an HMAC. The HMAC covers the random bytes and the frame, and its key is VIADUCT_SECRET. Without a
// secret, any caller can compute the HMAC. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace viaduct::nixl {

// The calls of the agent that an exchange makes on threads of its own. They throw a Failure, and do
// nothing if the agent is gone.
struct ExchangedAgent {
  std::function<std::string(std::string blob)> take;    // adds metadata, returns the agent's name
  std::function<std::string()> give;                    // the agent's metadata
  std::function<void(const std::string& name)> forget;  // another agent's metadata
};

class JobQueue;

// The calls in the background log their failures.
class Exchange {
 public:
  explicit Exchange(ExchangedAgent agent);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange();  // ends the listener

  // Answers callers in the background. Returns the port; 0 asks for a free one.
  Result<std::uint16_t> listen(std::uint16_t port);
  // Sends metadata to the listener at that address.
  void send(const std::string& host, std::uint16_t port, std::string blob);
  // Gets the metadata of the agent behind the listener, and adds it to this agent.
  void fetch(const std::string& host, std::uint16_t port);
  // Tells the agent behind the listener to forget the agent of that name.
  void invalidate(const std::string& host, std::uint16_t port, std::string name);
  // Runs another job in the background, after the earlier ones of that kind. `what` is for the log.
  void later(std::string what, std::function<void()> job);

 private:
  struct Shared;  // with the threads, which outlive this object
  JobQueue& jobsFor(const std::string& host, std::uint16_t port);

  const std::shared_ptr<Shared> shared_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::uint16_t>, std::shared_ptr<JobQueue>> jobs_;
};

}  // namespace viaduct::nixl
