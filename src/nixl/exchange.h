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

class NixlAgent;
// Calls the agent of an exchange with its lock held, from any thread, or does nothing if the agent
// is gone.
using AgentCaller = std::function<void(const std::function<void(NixlAgent&)>& call)>;

class JobQueue;

// The calls in the background log their failures.
class Exchange {
 public:
  explicit Exchange(AgentCaller agent);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange();  // ends the listener

  // Answers callers in the background. Returns the port; 0 asks for a free one.
  Result<std::uint16_t> listen(std::uint16_t port);
  // Sends metadata to the listener at that address.
  void send(const std::string& host, std::uint16_t port, const std::string& blob);
  // Gets the metadata of the agent behind the listener, and adds it to this agent.
  void fetch(const std::string& host, std::uint16_t port);
  // Tells the agent behind the listener to forget the agent of that name.
  void invalidate(const std::string& host, std::uint16_t port, const std::string& name);
  // Finds another agent at the meeting place. `label`: as for NixlAgent::findRemote().
  void find(const std::string& name, const std::string& label);

 private:
  struct Shared;  // shared with the threads, which outlive this object
  // Runs the job after all earlier jobs for the same listener. `what` names it in the log.
  void run(std::string what, const std::string& host, std::uint16_t port,
           std::function<void()> job);

  const std::shared_ptr<Shared> shared_;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::uint16_t>, std::shared_ptr<JobQueue>> jobs_;
};

}  // namespace viaduct::nixl
