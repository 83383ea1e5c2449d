// One UCP context: a rail's devices, and the memory that is registered with them. Threads: under
// the agent's lock.
#pragma once

#include <viaduct/result.h>

#include <memory>
#include <string>
#include <vector>

#include "backends/ucx/library.h"
#include "backends/ucx/message.h"
#include "backends/ucx/transports.h"

namespace viaduct::ucx {

// What is changed in our own copy of UCX's settings; empty: left as the user has it.
struct Choice {
  std::string transports = {};  // UCX_TLS
  std::string devices = {};     // UCX_NET_DEVICES
  bool connect_later = false;   // TCP connections do not block
};

class Context {
 public:
  static Result<std::unique_ptr<Context>> open(const Library& ucx, const Choice& choice);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Library& ucx() const { return ucx_; }
  ucp_context_h handle() const { return handle_; }
  const std::vector<Transport>& resources() const { return resources_; }

 private:
  explicit Context(const Library& ucx) : ucx_(ucx) {}

  const Library& ucx_;
  ucp_context_h handle_ = nullptr;
  std::vector<Transport> resources_;
};

// Memory that peers reach through one context, until this is gone.
class Registration {
 public:
  static Result<Registration> make(const Context& context, std::uint64_t address,
                                   std::uint64_t bytes);
  Registration(Registration&& other) noexcept;
  Registration& operator=(Registration&& other) noexcept;
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration();

  const Bytes& key() const { return key_; }  // packed, for peers

 private:
  Registration() = default;
  const Context* context_ = nullptr;
  ucp_mem_h memory_ = nullptr;
  Bytes key_;
};

// What such a function prints: it has no other way to tell.
template <class Print>
std::string printed(Print print) {
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* const file = ::open_memstream(&text, &bytes);
  if (file == nullptr) return {};
  print(file);
  std::fclose(file);
  std::string out(text, bytes);
  std::free(text);
  return out;
}

}  // namespace viaduct::ucx
