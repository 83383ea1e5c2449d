/* A program of a newer NIXL: it looks a function up by its name, and this library lacks one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <nixl_capi.h>
#include <stdio.h>

int main(void) {
  nixl_capi_agent_t agent = NULL;
  if (nixl_capi_create_agent("newer", &agent) != NIXL_CAPI_SUCCESS) return 1;
  nixl_capi_destroy_agent(agent);
  const char* const names[] = {"nixl_capi_is_stub", "nixl_capi_teleport"};
  for (int i = 0; i < 2; ++i)
    printf("%s %s\n", names[i], dlsym(RTLD_DEFAULT, names[i]) == NULL ? "lacks" : "is there");
  return 0;
}
