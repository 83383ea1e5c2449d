#include "support/etcd_access.h"

#include <fmt/format.h>

namespace viaduct::testing {
namespace {

constexpr auto kNewAuthority =
    "cd {0} && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    " -keyout {1}.key -out {1}.pem -subj /O={2}";

}  // namespace

Certificates::Certificates() {
  shell(fmt::format(kNewAuthority, folder_.path(), "ca", "viaduct-test-ca"));
  sign("server", "/O=viaduct-test", "serverAuth,clientAuth", "IP:127.0.0.1,DNS:localhost");
  sign("client", "/O=viaduct-test", "clientAuth", "DNS:client");
  sign("named", "/O=viaduct-test/CN=somebody", "clientAuth", "DNS:client");
  shell(fmt::format(kNewAuthority, folder_.path(), "other", "another-ca"));
}

void Certificates::sign(const std::string& name, const std::string& subject, const std::string& use,
                        const std::string& names) {
  shell(
      fmt::format("cd {0} && openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
                  " -keyout {1}.key -out {1}.csr -subj {2}"
                  " && printf 'extendedKeyUsage={3}\\nsubjectAltName={4}\\n' > {1}.ext"
                  " && openssl x509 -req -in {1}.csr -CA ca.pem -CAkey ca.key -CAcreateserial"
                  " -days 2 -extfile {1}.ext -out {1}.pem",
                  folder_.path(), name, subject, use, names));
}

void switchAuthOn(const EtcdServer& etcd) {
  for (const char* command :
       {"user add root:rootpw", "user grant-role root root", "role add member",
        "role grant-permission member --prefix=true readwrite /viaduct/", "user add viaduct:S3cret",
        "user grant-role viaduct member", "auth enable"})
    etcd.ctl(command);
}

}  // namespace viaduct::testing
