// Helpers for tests of etcd as a meeting place. Threads: any.
#pragma once

#include <gtest/gtest.h>
#include <viaduct/result.h>

#include <chrono>
#include <initializer_list>
#include <string>

#include "meet/meeting.h"

namespace viaduct::testing {

inline const meet::StopFlag kGoOn{false};
constexpr auto kLong = std::chrono::seconds(20);

inline void expectMentions(const Error& error, std::initializer_list<std::string> what) {
  for (const std::string& one : what)
    EXPECT_NE(error.text().find(one), std::string::npos)
        << one << " is missing in: " << error.text();
}

}  // namespace viaduct::testing
