/* The C API, with the reach of the C++ API: graphs, plans, devices, tuning, inspections, kernel
 * bundles and the reference oracle. docs/c-api.md is an overview.
 *
 * Errors: every function that can fail returns an ashlar_status. After a failure
 * ashlar_last_error() returns a message that names the argument, the value found and the value
 * expected. A failed call changes neither its inputs nor its output parameters. A null handle or
 * pointer is ASHLAR_INVALID_ARGUMENT.
 *
 * Text results: at most `capacity` bytes, including the terminating zero, are written to `buffer`.
 * `*needed` (may be null) receives the size of the whole text in bytes, including the terminating
 * zero. Pass a null buffer and capacity 0 to query the size. If the buffer is too small, the call
 * returns ASHLAR_INVALID_ARGUMENT and sets only `*needed`.
 *
 * Versioning: a struct that begins with `size` must have it set to sizeof(the struct); its _init
 * function does that. A newer library accepts the structs of an older one, and reads and writes
 * only what that one had. Members named `reserved` are 0.
 *
 * Enumerations are 32-bit integers: an unknown value is an error, not undefined behaviour.
 *
 * Ownership: a handle that a call stores in its output parameter belongs to the caller, who
 * releases it with the _destroy function of its type. Strings in results belong to the handle that
 * was asked.
 *
 * Threads: a handle may be used by one thread at a time. A plan is immutable: any number of threads
 * may run it concurrently, each with its own workspace. The last error is per thread.
 */
#ifndef ASHLAR_ASHLAR_H
#define ASHLAR_ASHLAR_H

#include <ashlar/c/base.h>
#include <ashlar/c/bundle.h>
#include <ashlar/c/check.h>
#include <ashlar/c/device.h>
#include <ashlar/c/graph.h>
#include <ashlar/c/inspect.h>
#include <ashlar/c/plan.h>
#include <ashlar/c/tune.h>
#include <ashlar/version.h>

#endif
