// The names that the C++ blocks of the pages use and do not declare. Names of one page alone are in
// the namespace of the page.
#pragma once
#include <viaduct/viaduct.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace viaduct::pages {

using namespace std::chrono_literals;

extern Agent agent, prefill, decode;
extern Peer peer, to_prefill;
extern Transfer transfer;
extern Note note;
extern std::vector<std::byte> blob;
extern Card card;

// Memory: descriptions of blocks, and indices into them.
extern Blocks ours, theirs, kv, kv_blocks, my_blocks;
extern std::vector<std::uint32_t> free_slots, table, my_table;
extern Selection here;
extern std::uint64_t bytes, slots, slot_bytes, size;
extern std::uint32_t count;
extern void* pointer;
Selection blocksOf(const Pin& pin);
Selection blocksOf(const PinInfo& pin);

namespace docs_digests_md {
extern Selection blocks, mine;
void recompute(std::uint32_t block);
}  // namespace docs_digests_md

namespace docs_drain_md {
void plan_again(const Peer& peer);
}

namespace docs_kv_md {
extern std::vector<std::uint32_t> layers, remote_table, local_table;
extern std::uint64_t pool_blocks, id;
extern std::vector<Indices> block_tables;
extern KvLayout mine, destination;
extern Peer prefill, decode;
}  // namespace docs_kv_md

namespace docs_parcels_md {
extern Agent trainer;
extern Blocks blocks, mine;
extern std::vector<PublishedPart> parts;
extern std::vector<PartInto> into;
extern std::vector<std::uint32_t> table_of_part_0, table_of_part_1, my_table_0, my_table_1;
}  // namespace docs_parcels_md

}  // namespace viaduct::pages
