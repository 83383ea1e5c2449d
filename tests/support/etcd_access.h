// Access control for a test's etcd-server: certificates, and a user with a password. Threads: one.
#pragma once

#include <string>

#include "support/etcd_server.h"

namespace viaduct::testing {

// A CA (ca.pem), and certificates of a server (server.pem, .key) and of two clients: `client`
// without a CommonName, and `named` with one. `other.pem` is another CA.
class Certificates {
 public:
  Certificates();
  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }
  EtcdServer::Settings server() const {
    return {file("ca.pem"), file("server.pem"), file("server.key")};
  }

 private:
  void sign(const std::string& name, const std::string& subject, const std::string& use,
            const std::string& names);
  TemporaryFolder folder_;
};

// Adds the user `viaduct` with password `S3cret`, who may use only the keys of /viaduct.
void switchAuthOn(const EtcdServer& etcd);

}  // namespace viaduct::testing
