// Helpers for tests of etcd as a meeting place. Threads: any.
#pragma once

#include <gtest/gtest.h>
#include <viaduct/result.h>

#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>

#include "meet/groups/group.h"

namespace viaduct::testing {

inline const meet::StopFlag kGoOn{false};
constexpr auto kLong = std::chrono::seconds(20);

// Opens the etcd for groups. Its address may have no scheme.
inline Result<std::unique_ptr<meet::GroupPlace>> openGroups(meet::PlaceOptions options) {
  options.where.insert(0, "etcd:");
  return meet::openGroupPlace(options);
}

inline void expectMentions(const Error& error, std::initializer_list<std::string> what) {
  for (const std::string& one : what)
    EXPECT_NE(error.text().find(one), std::string::npos)
        << one << " is missing in: " << error.text();
}

}  // namespace viaduct::testing
