#include "agent/session/messages.h"

namespace viaduct::agent {

std::size_t PinMessage::cost() const {
  constexpr std::size_t kOfTables = 384;
  std::size_t bytes = kOfTables + info.label.size();
  for (const auto& [backend, key] : keys) bytes += backend.size() + key.size();
  return bytes;
}

}  // namespace viaduct::agent
