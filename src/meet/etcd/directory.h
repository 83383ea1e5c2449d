// Names and their values, each with the lease of the process that published it. Threads: any but
// the loop's own.
#pragma once

#include <memory>
#include <string>

#include "meet/etcd/context.h"

namespace viaduct::meet::etcd {

Result<std::unique_ptr<PublishedName>> publishName(std::shared_ptr<EtcdContext> context,
                                                   const std::string& name,
                                                   const std::string& value,
                                                   Clock::time_point until);
Result<std::string> findName(EtcdContext& context, const std::string& name, Clock::time_point until,
                             const StopFlag& stop);

}  // namespace viaduct::meet::etcd
