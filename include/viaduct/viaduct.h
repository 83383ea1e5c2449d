// The whole public API.
#pragma once

#include <viaduct/agent.h>        // IWYU pragma: export
#include <viaduct/backend.h>      // IWYU pragma: export
#include <viaduct/blocks.h>       // IWYU pragma: export
#include <viaduct/card.h>         // IWYU pragma: export
#include <viaduct/deadline.h>     // IWYU pragma: export
#include <viaduct/digest.h>       // IWYU pragma: export
#include <viaduct/drain.h>        // IWYU pragma: export
#include <viaduct/kv.h>           // IWYU pragma: export
#include <viaduct/kv_models.h>    // IWYU pragma: export
#include <viaduct/kv_parts.h>     // IWYU pragma: export
#include <viaduct/lease.h>        // IWYU pragma: export
#include <viaduct/mark_stream.h>  // IWYU pragma: export
#include <viaduct/memory.h>       // IWYU pragma: export
#include <viaduct/note.h>         // IWYU pragma: export
#include <viaduct/parcel.h>       // IWYU pragma: export
#include <viaduct/path.h>         // IWYU pragma: export
#include <viaduct/peer.h>         // IWYU pragma: export
#include <viaduct/pin.h>          // IWYU pragma: export
#include <viaduct/result.h>       // IWYU pragma: export
#include <viaduct/settings.h>     // IWYU pragma: export
#include <viaduct/statistics.h>   // IWYU pragma: export
#include <viaduct/transfer.h>     // IWYU pragma: export
