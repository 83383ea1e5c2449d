// Maps the bytes of a part onto the memory of a fetch, and a slice onto the blocks of its holder.
// Threads: pure functions.
#pragma once

#include <viaduct/digest.h>
#include <viaduct/parcel.h>
#include <viaduct/result.h>

#include <vector>

namespace viaduct::agent {

// The memory that the fetch has for the part. Calls FetchOptions::place, without the lock.
Result<PartInto> intoOf(const FetchOptions& options, const PartOffer& offer);
// The bytes of the part that `slice` names by their offsets, as blocks of its holder. Without a
// slice: all.
Result<Blocks> sliceOf(const Blocks& part, const Blocks& slice);
// A read of a part: pairs of blocks, and the digests of the holder's blocks, if it has any.
struct PartCopy {
  Selection here = {}, there = {};  // without blocks if all of them are here already
  std::vector<Digest> digests = {};
};
// Digests of the holder's blocks can only be checked in blocks of the same sizes. Leaves out the
// blocks that have the same digests in PartInto::have.
Result<PartCopy> copyOf(const Blocks& part, std::vector<Digest> digests, PartInto into);
// Refuses a wrong fetch before the owner is asked, also one that would write a byte here twice.
Status checkFetch(const std::string& name, const FetchOptions& options);

}  // namespace viaduct::agent
