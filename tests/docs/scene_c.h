// The names that the C blocks of the pages use and do not declare.
#pragma once
#include <viaduct/c.h>

extern viaduct_agent agent;
extern viaduct_pin slab;
extern viaduct_error error;
extern uint64_t slots, slot_bytes;
