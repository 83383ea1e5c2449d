// NIXL's C interface: lists of strings and of kinds of memory, parameters, options, notifications.
#include <array>

#include "base/lists.h"
#include "nixl/c/call.h"

namespace {

using namespace viaduct;
using namespace viaduct::nixl;
using namespace viaduct::nixl::c;

constexpr std::array kMemoryTexts{"DRAM", "VRAM", "BLOCK", "OBJECT", "FILE", "UNKNOWN"};

// Null: the map has no notifications of that agent.
const std::vector<std::string>* notesFrom(nixl_capi_notif_map_t map, const char* agent) {
  return base::valueAt(map->notes, std::string_view(agent));
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names of C
nixl_capi_status_t nixl_capi_string_list_size(nixl_capi_string_list_t list, size_t* size) {
  return call({list, size}, [&] { *size = list->texts.size(); });
}
nixl_capi_status_t nixl_capi_string_list_get(nixl_capi_string_list_t list, size_t index,
                                             const char** text) {
  return call({list, text}, [&] { *text = itemAt(list->texts, index).c_str(); });
}
nixl_capi_status_t nixl_capi_destroy_string_list(nixl_capi_string_list_t list) {
  return destroy(list);
}

nixl_capi_status_t nixl_capi_mem_list_is_empty(nixl_capi_mem_list_t list, bool* is_empty) {
  return call({list, is_empty}, [&] { *is_empty = list->memories.empty(); });
}
nixl_capi_status_t nixl_capi_mem_list_size(nixl_capi_mem_list_t list, size_t* size) {
  return call({list, size}, [&] { *size = list->memories.size(); });
}
nixl_capi_status_t nixl_capi_mem_list_get(nixl_capi_mem_list_t list, size_t index,
                                          nixl_capi_mem_type_t* type) {
  return call({list, type},
              [&] { *type = static_cast<nixl_capi_mem_type_t>(itemAt(list->memories, index)); });
}
nixl_capi_status_t nixl_capi_mem_type_to_string(nixl_capi_mem_type_t type, const char** text) {
  return call({text}, [&] { *text = itemAt(kMemoryTexts, static_cast<std::size_t>(type)); });
}
nixl_capi_status_t nixl_capi_destroy_mem_list(nixl_capi_mem_list_t list) { return destroy(list); }

nixl_capi_status_t nixl_capi_create_params(nixl_capi_params_t* params) {
  return call({params}, [&] { *params = new nixl_capi_params_s(); });
}
nixl_capi_status_t nixl_capi_params_add(nixl_capi_params_t params, const char* key,
                                        const char* value) {
  return call({params, key, value}, [&] {
    std::erase_if(params->entries, [key](const auto& one) { return one.first == key; });
    params->entries.emplace_back(key, value);
  });
}
nixl_capi_status_t nixl_capi_params_is_empty(nixl_capi_params_t params, bool* is_empty) {
  return call({params, is_empty}, [&] { *is_empty = params->entries.empty(); });
}
nixl_capi_status_t nixl_capi_params_create_iterator(nixl_capi_params_t params,
                                                    nixl_capi_param_iter_t* iterator) {
  return call({params, iterator},
              [&] { *iterator = new nixl_capi_param_iter_s{.entries = params->entries}; });
}
nixl_capi_status_t nixl_capi_params_iterator_next(nixl_capi_param_iter_t iterator, const char** key,
                                                  const char** value, bool* has_next) {
  return call({iterator, key, value, has_next}, [&] {
    const auto& entries = iterator->entries;
    if (iterator->next < entries.size()) {
      *key = entries[iterator->next].first.c_str();
      *value = entries[iterator->next].second.c_str();
      ++iterator->next;
    }
    *has_next = iterator->next < entries.size();
  });
}
nixl_capi_status_t nixl_capi_params_destroy_iterator(nixl_capi_param_iter_t iterator) {
  return destroy(iterator);
}
nixl_capi_status_t nixl_capi_destroy_params(nixl_capi_params_t params) { return destroy(params); }

nixl_capi_status_t nixl_capi_create_opt_args(nixl_capi_opt_args_t* options) {
  return call({options}, [&] { *options = new nixl_capi_opt_args_s(); });
}
nixl_capi_status_t nixl_capi_destroy_opt_args(nixl_capi_opt_args_t options) {
  return destroy(options);
}
nixl_capi_status_t nixl_capi_opt_args_add_backend(nixl_capi_opt_args_t options,
                                                  nixl_capi_backend_t backend) {
  return call({options, backend}, [&] { options->backends.push_back(backend->plugin); });
}
nixl_capi_status_t nixl_capi_opt_args_set_notif_msg(nixl_capi_opt_args_t options, const void* data,
                                                    size_t length) {
  return call({options}, [&] { options->note = bytesAt(data, length); });
}
nixl_capi_status_t nixl_capi_opt_args_get_notif_msg(nixl_capi_opt_args_t options, void** data,
                                                    size_t* length) {
  return call({options, data, length}, [&] {
    *data = copied(options->note);
    *length = options->note.size();
  });
}
nixl_capi_status_t nixl_capi_opt_args_set_has_notif(nixl_capi_opt_args_t options, bool has_notif) {
  return call({options}, [&] { options->has_note = has_notif; });
}
nixl_capi_status_t nixl_capi_opt_args_get_has_notif(nixl_capi_opt_args_t options, bool* has_notif) {
  return call({options, has_notif}, [&] { *has_notif = options->has_note; });
}
nixl_capi_status_t nixl_capi_opt_args_set_skip_desc_merge(nixl_capi_opt_args_t options,
                                                          bool skip_merge) {
  return call({options}, [&] { options->skip_merge = skip_merge; });
}
nixl_capi_status_t nixl_capi_opt_args_get_skip_desc_merge(nixl_capi_opt_args_t options,
                                                          bool* skip_merge) {
  return call({options, skip_merge}, [&] { *skip_merge = options->skip_merge; });
}
nixl_capi_status_t nixl_capi_opt_args_set_ip_addr(nixl_capi_opt_args_t options,
                                                  const char* ip_addr) {
  return call({options, ip_addr}, [&] { options->host = ip_addr; });
}
nixl_capi_status_t nixl_capi_opt_args_set_port(nixl_capi_opt_args_t options, uint16_t port) {
  return call({options}, [&] { options->port = port; });
}

nixl_capi_status_t nixl_capi_create_notif_map(nixl_capi_notif_map_t* map) {
  return call({map}, [&] { *map = new nixl_capi_notif_map_s(); });
}
nixl_capi_status_t nixl_capi_destroy_notif_map(nixl_capi_notif_map_t map) { return destroy(map); }
nixl_capi_status_t nixl_capi_get_notifs(nixl_capi_agent_t agent, nixl_capi_notif_map_t map,
                                        nixl_capi_opt_args_t /*options*/) {
  return call({agent, map}, [&] {
    for (const Note& note : agent->owned->with([](NixlAgent& one) { return one.takeNotes(); }))
      map->notes[note.from].emplace_back(note.text());
  });
}
nixl_capi_status_t nixl_capi_gen_notif(nixl_capi_agent_t agent, const char* remote,
                                       const void* data, size_t length,
                                       nixl_capi_opt_args_t /*options*/) {
  return call({agent, remote}, [&] {
    const std::string note = bytesAt(data, length);
    agent->owned->with([&](NixlAgent& one) { one.sendNote(remote, note); });
  });
}
nixl_capi_status_t nixl_capi_notif_map_size(nixl_capi_notif_map_t map, size_t* agents) {
  return call({map, agents}, [&] { *agents = map->notes.size(); });
}
nixl_capi_status_t nixl_capi_notif_map_get_agent_at(nixl_capi_notif_map_t map, size_t index,
                                                    const char** agent_name) {
  return call({map, agent_name}, [&] {
    if (index >= map->notes.size())
      fail(Outcome::kInvalid, "the map has fewer agents; ask for its size first");
    *agent_name = std::next(map->notes.begin(), static_cast<std::ptrdiff_t>(index))->first.c_str();
  });
}
nixl_capi_status_t nixl_capi_notif_map_get_notifs_size(nixl_capi_notif_map_t map,
                                                       const char* agent_name, size_t* notifs) {
  return call({map, agent_name, notifs}, [&] {
    const auto* const notes = notesFrom(map, agent_name);
    if (notes == nullptr) return NIXL_CAPI_ERROR_INVALID_PARAM;
    *notifs = notes->size();
    return NIXL_CAPI_SUCCESS;
  });
}
nixl_capi_status_t nixl_capi_notif_map_get_notif(nixl_capi_notif_map_t map, const char* agent_name,
                                                 size_t index, const void** data, size_t* length) {
  return call({map, agent_name, data, length}, [&] {
    const auto* const notes = notesFrom(map, agent_name);
    if (notes == nullptr) return NIXL_CAPI_ERROR_INVALID_PARAM;
    const std::string& note = itemAt(*notes, index);
    *data = note.data();
    *length = note.size();
    return NIXL_CAPI_SUCCESS;
  });
}
nixl_capi_status_t nixl_capi_notif_map_clear(nixl_capi_notif_map_t map) {
  return call({map}, [&] { map->notes.clear(); });
}

bool nixl_capi_is_stub(void) { return false; }
// NOLINTEND(readability-identifier-naming)
