// The page of many nodes' diagnoses. Threads: pure functions.
#pragma once

#include <span>
#include <string>

#include "diag/nodes.h"

namespace viaduct::app {

// "11 of 64 nodes", "the node".
std::string nodesWords(std::size_t some, std::size_t all);
// "node-1, node-2": the names of the nodes with these indices.
std::string namesOf(std::span<const std::size_t> some, std::span<const diag::NodeResult> nodes);
// "64 nodes: 11 with failures, 2 with warnings, 1 without an answer".
std::string nodesVerdict(std::span<const diag::NodeResult> nodes);

// One HTML page that needs no network and no script.
std::string nodesPage(std::span<const diag::NodeResult> nodes);

}  // namespace viaduct::app
