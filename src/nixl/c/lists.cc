// NIXL's C interface: lists of descriptors.
#include <fmt/format.h>

#include <cstdio>

#include "nixl/c/call.h"

namespace {

using namespace viaduct;
using namespace viaduct::nixl;
using namespace viaduct::nixl::c;

template <class D>
c::Status createOf(c::MemType type, D** dlist) {
  return call({dlist}, [&] {
    if (type != NIXL_CAPI_MEM_UNKNOWN) memoryOf(type);
    *dlist = new D{.type = type};
  });
}

template <class D>
c::Status typeOf(D* dlist, c::MemType* type) {
  return call({dlist, type}, [&] { *type = dlist->type; });
}

template <class D>
c::Status count(D* dlist, size_t* rows) {
  return call({dlist, rows}, [&] { *rows = dlist->list.rows->count(); });
}

template <class D>
c::Status isEmpty(D* dlist, bool* is_empty) {
  return call({dlist, is_empty}, [&] { *is_empty = dlist->list.rows->count() == 0; });
}

template <class D>
c::Status remove(D* dlist, int index) {
  return call<Failures::kBackend>({dlist}, [&] {
    const std::size_t rows = dlist->list.rows->count();
    if (index < 0 || static_cast<std::size_t>(index) >= rows)
      fail(Outcome::kInvalid, fmt::format("the list has no descriptor {}; it has {}", index, rows));
    removeRow(dlist->list, static_cast<std::size_t>(index));
  });
}

template <class D>
c::Status resize(D* dlist, size_t rows) {
  return call({dlist}, [&] { resizeRows(dlist->list, rows); });
}

template <class D>
c::Status print(const char* name, D* dlist) {
  return call({dlist}, [&] {
    const Rows& rows = *dlist->list.rows;
    const char* kind = "UNKNOWN";
    nixl_capi_mem_type_to_string(dlist->type, &kind);
    fmt::print("{}: {} descriptors of {}\n", name, rows.count(), kind);
    for (std::size_t row = 0; row < rows.count(); ++row)
      fmt::print("  address {:#x}, {} bytes, device {}\n", rows.extent(row).address,
                 rows.extent(row).bytes, rows.devices()[row]);
    std::fflush(stdout);
  });
}

template <class D>
c::Status trim(D* dlist) {
  return call({dlist}, [] {});
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names of C
c::Status nixl_capi_create_xfer_dlist(c::MemType type, c::XferDlist* dlist) {
  return createOf(type, dlist);
}
c::Status nixl_capi_destroy_xfer_dlist(c::XferDlist dlist) { return destroy(dlist); }
c::Status nixl_capi_xfer_dlist_get_type(c::XferDlist dlist, c::MemType* type) {
  return typeOf(dlist, type);
}
c::Status nixl_capi_xfer_dlist_add_desc(c::XferDlist dlist, uintptr_t addr, size_t len,
                                        uint64_t dev_id) {
  return call({dlist}, [&] { dlist->list.ownRows().add(Extent{addr, len}, dev_id); });
}
c::Status nixl_capi_xfer_dlist_desc_count(c::XferDlist dlist, size_t* rows) {
  return count(dlist, rows);
}
c::Status nixl_capi_xfer_dlist_len(c::XferDlist dlist, size_t* rows) { return count(dlist, rows); }
c::Status nixl_capi_xfer_dlist_is_empty(c::XferDlist dlist, bool* is_empty) {
  return isEmpty(dlist, is_empty);
}
c::Status nixl_capi_xfer_dlist_trim(c::XferDlist dlist) { return trim(dlist); }
c::Status nixl_capi_xfer_dlist_rem_desc(c::XferDlist dlist, int index) {
  return remove(dlist, index);
}
c::Status nixl_capi_xfer_dlist_clear(c::XferDlist dlist) { return resize(dlist, 0); }
c::Status nixl_capi_xfer_dlist_resize(c::XferDlist dlist, size_t rows) {
  return resize(dlist, rows);
}
c::Status nixl_capi_xfer_dlist_print(c::XferDlist dlist) { return print("xfer_dlist", dlist); }

c::Status nixl_capi_create_reg_dlist(c::MemType type, c::RegDlist* dlist) {
  return createOf(type, dlist);
}
c::Status nixl_capi_destroy_reg_dlist(c::RegDlist dlist) { return destroy(dlist); }
c::Status nixl_capi_reg_dlist_get_type(c::RegDlist dlist, c::MemType* type) {
  return typeOf(dlist, type);
}
c::Status nixl_capi_reg_dlist_add_desc(c::RegDlist dlist, uintptr_t addr, size_t len,
                                       uint64_t dev_id, const void* metadata,
                                       size_t metadata_length) {
  return call({dlist}, [&] {
    dlist->list.texts.push_back(bytesAt(metadata, metadata_length));
    dlist->list.ownRows().add(Extent{addr, len}, dev_id);
  });
}
c::Status nixl_capi_reg_dlist_desc_count(c::RegDlist dlist, size_t* rows) {
  return count(dlist, rows);
}
c::Status nixl_capi_reg_dlist_is_empty(c::RegDlist dlist, bool* is_empty) {
  return isEmpty(dlist, is_empty);
}
c::Status nixl_capi_reg_dlist_trim(c::RegDlist dlist) { return trim(dlist); }
c::Status nixl_capi_reg_dlist_rem_desc(c::RegDlist dlist, int index) {
  return remove(dlist, index);
}
c::Status nixl_capi_reg_dlist_clear(c::RegDlist dlist) { return resize(dlist, 0); }
c::Status nixl_capi_reg_dlist_resize(c::RegDlist dlist, size_t rows) { return resize(dlist, rows); }
c::Status nixl_capi_reg_dlist_print(c::RegDlist dlist) { return print("reg_dlist", dlist); }

c::Status nixl_capi_create_remote_dlist(c::MemType type, c::RemoteDlist* dlist) {
  return createOf(type, dlist);
}
c::Status nixl_capi_destroy_remote_dlist(c::RemoteDlist dlist) { return destroy(dlist); }
c::Status nixl_capi_remote_dlist_add_desc(c::RemoteDlist dlist, uintptr_t addr, size_t len,
                                          uint64_t dev_id, const char* agent_name) {
  return call({dlist}, [&] {
    dlist->list.texts.emplace_back(agent_name == nullptr ? "NULL_AGENT" : agent_name);
    dlist->list.ownRows().add(Extent{addr, len}, dev_id);
  });
}
// NOLINTEND(readability-identifier-naming)
