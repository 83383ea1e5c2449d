// NIXL's C interface: lists of strings and of kinds of memory, parameters, options, notifications.
#include <array>

#include "base/lists.h"
#include "nixl/c/call.h"

namespace {

using namespace viaduct;
using namespace viaduct::nixl;
using namespace viaduct::nixl::c;

constexpr std::array kMemoryTexts{"DRAM", "VRAM", "BLOCK", "OBJECT", "FILE", "UNKNOWN"};

// The notifications of an agent. Null: the map has none of that agent.
const std::vector<std::string>* notesFrom(c::NotifMap map, const char* agent) {
  return base::valueAt(map->notes, std::string_view(agent));
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names of C
c::Status nixl_capi_string_list_size(c::StringList list, size_t* size) {
  return call({list, size}, [&] { *size = list->texts.size(); });
}
c::Status nixl_capi_string_list_get(c::StringList list, size_t index, const char** text) {
  return call({list, text}, [&] { *text = itemAt(list->texts, index).c_str(); });
}
c::Status nixl_capi_destroy_string_list(c::StringList list) { return destroy(list); }

c::Status nixl_capi_mem_list_is_empty(c::MemList list, bool* is_empty) {
  return call({list, is_empty}, [&] { *is_empty = list->memories.empty(); });
}
c::Status nixl_capi_mem_list_size(c::MemList list, size_t* size) {
  return call({list, size}, [&] { *size = list->memories.size(); });
}
c::Status nixl_capi_mem_list_get(c::MemList list, size_t index, c::MemType* type) {
  return call({list, type},
              [&] { *type = static_cast<c::MemType>(itemAt(list->memories, index)); });
}
c::Status nixl_capi_mem_type_to_string(c::MemType type, const char** text) {
  return call({text}, [&] { *text = itemAt(kMemoryTexts, static_cast<std::size_t>(type)); });
}
c::Status nixl_capi_destroy_mem_list(c::MemList list) { return destroy(list); }

c::Status nixl_capi_create_params(c::Params* params) { return create(params); }
c::Status nixl_capi_params_add(c::Params params, const char* key, const char* value) {
  return call({params, key, value}, [&] {
    std::erase_if(params->entries, [key](const auto& one) { return one.first == key; });
    params->entries.emplace_back(key, value);
  });
}
c::Status nixl_capi_params_is_empty(c::Params params, bool* is_empty) {
  return call({params, is_empty}, [&] { *is_empty = params->entries.empty(); });
}
c::Status nixl_capi_params_create_iterator(c::Params params, c::ParamIter* iterator) {
  return call({params, iterator}, [&] { *iterator = new nixl_capi_param_iter_s{params->entries}; });
}
c::Status nixl_capi_params_iterator_next(c::ParamIter iterator, const char** key,
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
c::Status nixl_capi_params_destroy_iterator(c::ParamIter iterator) { return destroy(iterator); }
c::Status nixl_capi_destroy_params(c::Params params) { return destroy(params); }

c::Status nixl_capi_create_opt_args(c::OptArgs* options) { return create(options); }
c::Status nixl_capi_destroy_opt_args(c::OptArgs options) { return destroy(options); }
c::Status nixl_capi_opt_args_add_backend(c::OptArgs options, c::Backend backend) {
  return call({options, backend}, [&] { options->backends.push_back(backend->plugin); });
}
c::Status nixl_capi_opt_args_set_notif_msg(c::OptArgs options, const void* data, size_t length) {
  return call({options}, [&] { options->note = bytesAt(data, length); });
}
c::Status nixl_capi_opt_args_get_notif_msg(c::OptArgs options, void** data, size_t* length) {
  return call({options, data, length}, [&] { giveBytes(options->note, data, length); });
}
c::Status nixl_capi_opt_args_set_has_notif(c::OptArgs options, bool has_notif) {
  return call({options}, [&] { options->has_note = has_notif; });
}
c::Status nixl_capi_opt_args_get_has_notif(c::OptArgs options, bool* has_notif) {
  return call({options, has_notif}, [&] { *has_notif = options->has_note; });
}
c::Status nixl_capi_opt_args_set_skip_desc_merge(c::OptArgs options, bool skip_merge) {
  return call({options}, [&] { options->skip_merge = skip_merge; });
}
c::Status nixl_capi_opt_args_get_skip_desc_merge(c::OptArgs options, bool* skip_merge) {
  return call({options, skip_merge}, [&] { *skip_merge = options->skip_merge; });
}
c::Status nixl_capi_opt_args_set_ip_addr(c::OptArgs options, const char* ip_addr) {
  return call({options, ip_addr}, [&] { options->host = ip_addr; });
}
c::Status nixl_capi_opt_args_set_port(c::OptArgs options, uint16_t port) {
  return call({options}, [&] { options->port = port; });
}

c::Status nixl_capi_create_notif_map(c::NotifMap* map) { return create(map); }
c::Status nixl_capi_destroy_notif_map(c::NotifMap map) { return destroy(map); }
c::Status nixl_capi_get_notifs(c::Agent agent, c::NotifMap map, c::OptArgs /*options*/) {
  return call({agent, map}, [&] {
    for (const Note& note : agent->locked()->takeNotes())
      map->notes[note.from].emplace_back(note.text());
  });
}
c::Status nixl_capi_gen_notif(c::Agent agent, const char* remote, const void* data, size_t length,
                              c::OptArgs /*options*/) {
  return call({agent, remote}, [&] { agent->locked()->sendNote(remote, bytesAt(data, length)); });
}
c::Status nixl_capi_notif_map_size(c::NotifMap map, size_t* agents) {
  return call({map, agents}, [&] { *agents = map->notes.size(); });
}
c::Status nixl_capi_notif_map_get_agent_at(c::NotifMap map, size_t index, const char** agent_name) {
  return call({map, agent_name}, [&] {
    if (index >= map->notes.size())
      fail(Outcome::kInvalid, "the map has fewer agents; ask for its size first");
    *agent_name = std::next(map->notes.begin(), static_cast<std::ptrdiff_t>(index))->first.c_str();
  });
}
c::Status nixl_capi_notif_map_get_notifs_size(c::NotifMap map, const char* agent_name,
                                              size_t* notifs) {
  return call({map, agent_name, notifs}, [&] {
    const auto* const notes = notesFrom(map, agent_name);
    if (notes == nullptr) return NIXL_CAPI_ERROR_INVALID_PARAM;
    *notifs = notes->size();
    return NIXL_CAPI_SUCCESS;
  });
}
c::Status nixl_capi_notif_map_get_notif(c::NotifMap map, const char* agent_name, size_t index,
                                        const void** data, size_t* length) {
  return call({map, agent_name, data, length}, [&] {
    const auto* const notes = notesFrom(map, agent_name);
    if (notes == nullptr) return NIXL_CAPI_ERROR_INVALID_PARAM;
    const std::string& note = itemAt(*notes, index);
    *data = note.data();
    *length = note.size();
    return NIXL_CAPI_SUCCESS;
  });
}
c::Status nixl_capi_notif_map_clear(c::NotifMap map) {
  return call({map}, [&] { map->notes.clear(); });
}

bool nixl_capi_is_stub(void) { return false; }
// NOLINTEND(readability-identifier-naming)
