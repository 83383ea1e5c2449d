// Agent: digests of blocks in its pinned memory. The calling thread reads the blocks, without the
// agent's lock.
#include <fmt/format.h>
#include <viaduct/agent.h>

#include <utility>

#include "agent/agent_impl.h"
#include "agent/basis/block_digester.h"

namespace viaduct {
namespace {

Status checkIndices(const Selection& selection) {
  for (std::size_t i = 0; i < selection.indices.size(); ++i)
    if (selection.indices[i] >= selection.blocks.count())
      return Error{.code = Code::kInvalid,
                   .operation = "digest",
                   .detail = fmt::format("index {} is block {} of {}", i, selection.indices[i],
                                         selection.blocks.count())};
  return Ok{};
}

}  // namespace

Result<std::vector<Digest>> Agent::digestBlocks(const Selection& selection) const {
  VIADUCT_CHECK(impl_->usable("digestBlocks"));
  VIADUCT_CHECK(checkIndices(selection));
  auto held = impl_->hold();
  agent::BlockDigester digester(selection, impl_->blockMemory());
  held.unlock();
  std::vector<Digest> out;
  out.reserve(digester.count());
  const auto found = [&](std::uint64_t, std::span<const Digest> digests) {
    out.insert(out.end(), digests.begin(), digests.end());
  };
  while (!digester.done()) VIADUCT_CHECK(digester.advance(found));
  return out;
}

Status Agent::checkBlocks(const Selection& selection, std::span<const Digest> digests) const {
  VIADUCT_CHECK(impl_->usable("checkBlocks"));
  VIADUCT_CHECK(checkIndices(selection));
  auto held = impl_->hold();
  const auto memory = impl_->blockMemory();
  held.unlock();
  agent::BlockDigester digester(selection, memory);
  VIADUCT_CHECK(agent::checkNumberOfDigests("checkBlocks", digests.size(), digester.count()));
  agent::BlockCheck check(std::move(digester), {digests.begin(), digests.end()});
  while (!check.done()) VIADUCT_CHECK(check.advance());
  if (check.corrupt().empty()) return Ok{};
  return check.error(memory->find(check.firstCorrupt()));
}

}  // namespace viaduct
