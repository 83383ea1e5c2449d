// A TCPStore of our own for tests, in both dialects. It closes a connection at anything that torch
// would not send, and does nothing that the contract of a TCPStore does not promise: COMPARE_SET
// wakes no waiting client. It lies, hangs and restarts on demand. Threads: any.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "meet/tcpstore/protocol.h"

namespace viaduct::testing {

class TcpStoreServer {
 public:
  enum class Fault : std::uint8_t {
    kNone,
    kSilent,    // reads queries and answers none
    kTruncate,  // sends the first byte of each answer of several bytes, and closes the connection
    kForeign,   // answers each query with a text of HTTP
    kLoses,     // carries out changes by COMPARE_SET, and does not answer them
    kHolds,     // keeps changes by COMPARE_SET for carryOutHeld(), and does not answer them
  };

  explicit TcpStoreServer(meet::tcpstore::Dialect dialect);
  ~TcpStoreServer();
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;

  std::string where() const;   // "127.0.0.1:port"
  void kill();                 // closes all connections and forgets all keys
  void start();                // after kill(), at the same port
  void setFault(Fault fault);  // for queries that come later
  void carryOutHeld();
  void closeAll();  // closes all connections, and keeps the keys

  std::uint64_t queries();      // since the start, all kinds
  std::uint64_t connections();  // accepted since the start
  std::size_t keys();
  std::uint64_t refusals();  // connections that it closed for a wrong query
  std::string refusal();     // the last reason
  void set(const std::string& key, const std::string& value);
  std::map<std::string, std::string> all();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace viaduct::testing
