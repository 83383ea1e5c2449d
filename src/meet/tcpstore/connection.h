// One connection to a TCPStore. Threads: one at a time; a call blocks its thread.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "meet/tcpstore/protocol.h"

namespace viaduct::meet::tcpstore {

// The limits of one call.
struct Limits {
  Clock::time_point until = {};
  // Called at least every 50 ms; false ends the call. Empty: the call sleeps until `wake`.
  std::function<bool()> goes_on = {};
  int wake = -1;  // an eventfd that ends the call
};

class Connection {
 public:
  // Dials, and finds the dialect unless it is known. Fails with kUnsupported if the other end
  // closed the greetings of both dialects, and with kProtocol if it answered as no TCPStore does.
  static Result<std::unique_ptr<Connection>> open(const std::string& where,
                                                  std::optional<Dialect> known,
                                                  const Limits& limits);

  Dialect dialect() const { return dialect_; }
  // Sends queries, and reads the answer of the last one. All other queries must have no answer.
  // After any error the connection is unusable.
  Result<Answer> ask(std::string_view queries, Form form, const Limits& limits);
  bool usable() const { return usable_; }

 private:
  Connection(base::Fd socket, Dialect dialect) : socket_(std::move(socket)), dialect_(dialect) {}
  static Result<std::unique_ptr<Connection>> dial(const std::string& where, Dialect dialect,
                                                  const Limits& limits);
  // Whether the other end closed the connection without an answer.
  bool refused(const Result<Answer>& answer) const {
    return answer.error().code == Code::kPeerLost && received_.empty();
  }
  Status send(std::string_view bytes, const Limits& limits);
  Result<Answer> receive(Form form, const Limits& limits);
  Status waitAfter(const char* call, short events, const Limits& limits) const;

  base::Fd socket_;
  Dialect dialect_;
  bool usable_ = true;
  std::string received_;  // bytes without a whole answer
};

}  // namespace viaduct::meet::tcpstore
