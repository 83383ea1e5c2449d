// Makes the scene for the table of causes from what the members of a row have observed. Threads:
// pure functions.
#pragma once

#include "causes/causes.h"
#include "measure/proof/account.h"
#include "measure/proof/ceilings.h"
#include "measure/proof/judge.h"

namespace viaduct::measure::proof {

causes::Scene sceneOf(const Account& account, const RowFacts& facts, const Limits& limits);

}  // namespace viaduct::measure::proof
