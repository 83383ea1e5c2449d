// The address of a meeting place, and the credentials. Threads: plain values.
#pragma once

#include <viaduct/settings.h>

#include <chrono>
#include <string>
#include <utility>

#include "base/waiting.h"

namespace viaduct::meet {

struct PlaceOptions {
  // The scheme chooses the place, see choosePlace(). Embedded: "host:port". Etcd:
  // "http://host:port", several joined by commas, or "etcd:host:port".
  std::string where = {};
  // The group's secret. Members and the server prove that they know it. At an etcd they also prove
  // that they can read the group's key there.
  std::string token = {};
  // The groups and names of two namespaces are independent. Empty: "/viaduct".
  std::string name_space = {};
  // Credentials for etcd.
  std::string user = {}, password = {};
  std::string ca_file = {}, certificate_file = {}, key_file = {};
  // A member counts as dead after a silence of this length. At an embedded place, the server's
  // value counts for all members.
  std::chrono::milliseconds detect = std::chrono::seconds(2);
  // Embedded: a member that may get rank 0 starts the server if its host has the address, see
  // serveIfHere().
  bool serve = false;
  bool insecure = false;  // lets that server listen beyond loopback without a token
  // Gets lines about missing members during long waits. The waiting thread calls it.
  base::SayWaiting waiting = {};
};

// The prefix of all keys at a place.
inline std::string rootOf(const PlaceOptions& options) {
  std::string root = options.name_space.empty() ? "/viaduct" : options.name_space;
  while (root.ends_with('/')) root.pop_back();
  return root;
}

// Returns the options of a place with the secret and the credentials of an agent.
inline PlaceOptions placeOptionsOf(std::string where, const Settings& settings) {
  return {.where = std::move(where),
          .token = settings.secret,
          .name_space = settings.name_space,
          .user = settings.meet_user,
          .password = settings.meet_password,
          .ca_file = settings.meet_ca,
          .certificate_file = settings.meet_certificate,
          .key_file = settings.meet_key,
          .detect = settings.detect};
}

}  // namespace viaduct::meet
