// NIXL's C interface: lists of descriptors.
#include <fmt/format.h>

#include <cstdio>

#include "nixl/c/call.h"

namespace {

using namespace viaduct;
using namespace viaduct::nixl;
using namespace viaduct::nixl::c;

template <class D>
nixl_capi_status_t create(nixl_capi_mem_type_t type, D** dlist) {
  return call({dlist}, [&] {
    if (type != NIXL_CAPI_MEM_UNKNOWN) memoryOf(type);
    *dlist = new D{.type = type};
  });
}

template <class D>
nixl_capi_status_t typeOf(D* dlist, nixl_capi_mem_type_t* type) {
  return call({dlist, type}, [&] { *type = dlist->type; });
}

template <class D>
nixl_capi_status_t count(D* dlist, size_t* rows) {
  return call({dlist, rows}, [&] { *rows = dlist->list.rows->count(); });
}

template <class D>
nixl_capi_status_t isEmpty(D* dlist, bool* is_empty) {
  return call({dlist, is_empty}, [&] { *is_empty = dlist->list.rows->count() == 0; });
}

void removeText(nixl_capi_xfer_dlist_s& /*dlist*/, std::ptrdiff_t /*row*/) {}
void removeText(nixl_capi_reg_dlist_s& dlist, std::ptrdiff_t row) {
  dlist.list.metadata.erase(dlist.list.metadata.begin() + row);
}
void resizeTexts(nixl_capi_xfer_dlist_s& /*dlist*/, std::size_t /*rows*/) {}
void resizeTexts(nixl_capi_reg_dlist_s& dlist, std::size_t rows) {
  dlist.list.metadata.resize(rows);
}

template <class D>
nixl_capi_status_t remove(D* dlist, int index) {
  return call(
      {dlist},
      [&] {
        if (index < 0 || static_cast<std::size_t>(index) >= dlist->list.rows->count())
          fail(Outcome::kInvalid, fmt::format("the list has no descriptor {}; it has {}", index,
                                              dlist->list.rows->count()));
        dlist->list.ownRows().remove(static_cast<std::size_t>(index));
        removeText(*dlist, index);
      },
      Failures::kBackend);
}

// New descriptors are zeros.
template <class D>
nixl_capi_status_t resize(D* dlist, size_t rows) {
  return call({dlist}, [&] {
    resizeTexts(*dlist, rows);
    dlist->list.ownRows().resize(rows);
  });
}

template <class D>
nixl_capi_status_t print(const char* name, D* dlist) {
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

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names of C
nixl_capi_status_t nixl_capi_create_xfer_dlist(nixl_capi_mem_type_t type,
                                               nixl_capi_xfer_dlist_t* dlist) {
  return create(type, dlist);
}
nixl_capi_status_t nixl_capi_destroy_xfer_dlist(nixl_capi_xfer_dlist_t dlist) {
  return destroy(dlist);
}
nixl_capi_status_t nixl_capi_xfer_dlist_get_type(nixl_capi_xfer_dlist_t dlist,
                                                 nixl_capi_mem_type_t* type) {
  return typeOf(dlist, type);
}
nixl_capi_status_t nixl_capi_xfer_dlist_add_desc(nixl_capi_xfer_dlist_t dlist, uintptr_t addr,
                                                 size_t len, uint64_t dev_id) {
  return call({dlist}, [&] { dlist->list.ownRows().add(Extent{addr, len}, dev_id); });
}
nixl_capi_status_t nixl_capi_xfer_dlist_desc_count(nixl_capi_xfer_dlist_t dlist, size_t* rows) {
  return count(dlist, rows);
}
nixl_capi_status_t nixl_capi_xfer_dlist_len(nixl_capi_xfer_dlist_t dlist, size_t* rows) {
  return count(dlist, rows);
}
nixl_capi_status_t nixl_capi_xfer_dlist_is_empty(nixl_capi_xfer_dlist_t dlist, bool* is_empty) {
  return isEmpty(dlist, is_empty);
}
nixl_capi_status_t nixl_capi_xfer_dlist_trim(nixl_capi_xfer_dlist_t dlist) {
  return call({dlist}, [] {});
}
nixl_capi_status_t nixl_capi_xfer_dlist_rem_desc(nixl_capi_xfer_dlist_t dlist, int index) {
  return remove(dlist, index);
}
nixl_capi_status_t nixl_capi_xfer_dlist_clear(nixl_capi_xfer_dlist_t dlist) {
  return resize(dlist, 0);
}
nixl_capi_status_t nixl_capi_xfer_dlist_resize(nixl_capi_xfer_dlist_t dlist, size_t rows) {
  return resize(dlist, rows);
}
nixl_capi_status_t nixl_capi_xfer_dlist_print(nixl_capi_xfer_dlist_t dlist) {
  return print("xfer_dlist", dlist);
}

nixl_capi_status_t nixl_capi_create_reg_dlist(nixl_capi_mem_type_t type,
                                              nixl_capi_reg_dlist_t* dlist) {
  return create(type, dlist);
}
nixl_capi_status_t nixl_capi_destroy_reg_dlist(nixl_capi_reg_dlist_t dlist) {
  return destroy(dlist);
}
nixl_capi_status_t nixl_capi_reg_dlist_get_type(nixl_capi_reg_dlist_t dlist,
                                                nixl_capi_mem_type_t* type) {
  return typeOf(dlist, type);
}
nixl_capi_status_t nixl_capi_reg_dlist_add_desc(nixl_capi_reg_dlist_t dlist, uintptr_t addr,
                                                size_t len, uint64_t dev_id, const void* metadata,
                                                size_t metadata_length) {
  return call({dlist}, [&] {
    dlist->list.metadata.push_back(bytesAt(metadata, metadata_length));
    dlist->list.ownRows().add(Extent{addr, len}, dev_id);
  });
}
nixl_capi_status_t nixl_capi_reg_dlist_desc_count(nixl_capi_reg_dlist_t dlist, size_t* rows) {
  return count(dlist, rows);
}
nixl_capi_status_t nixl_capi_reg_dlist_is_empty(nixl_capi_reg_dlist_t dlist, bool* is_empty) {
  return isEmpty(dlist, is_empty);
}
nixl_capi_status_t nixl_capi_reg_dlist_trim(nixl_capi_reg_dlist_t dlist) {
  return call({dlist}, [] {});
}
nixl_capi_status_t nixl_capi_reg_dlist_rem_desc(nixl_capi_reg_dlist_t dlist, int index) {
  return remove(dlist, index);
}
nixl_capi_status_t nixl_capi_reg_dlist_clear(nixl_capi_reg_dlist_t dlist) {
  return resize(dlist, 0);
}
nixl_capi_status_t nixl_capi_reg_dlist_resize(nixl_capi_reg_dlist_t dlist, size_t rows) {
  return resize(dlist, rows);
}
nixl_capi_status_t nixl_capi_reg_dlist_print(nixl_capi_reg_dlist_t dlist) {
  return print("reg_dlist", dlist);
}

nixl_capi_status_t nixl_capi_create_remote_dlist(nixl_capi_mem_type_t type,
                                                 nixl_capi_remote_dlist_t* dlist) {
  return create(type, dlist);
}
nixl_capi_status_t nixl_capi_destroy_remote_dlist(nixl_capi_remote_dlist_t dlist) {
  return destroy(dlist);
}
nixl_capi_status_t nixl_capi_remote_dlist_add_desc(nixl_capi_remote_dlist_t dlist, uintptr_t addr,
                                                   size_t len, uint64_t dev_id,
                                                   const char* agent_name) {
  return call({dlist}, [&] {
    dlist->list.agents.emplace_back(agent_name == nullptr ? "NULL_AGENT" : agent_name);
    dlist->list.ownRows().add(Extent{addr, len}, dev_id);
  });
}
// NOLINTEND(readability-identifier-naming)
