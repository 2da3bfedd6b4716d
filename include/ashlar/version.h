/* The version of these headers, for C and C++. */
#ifndef ASHLAR_VERSION_H
#define ASHLAR_VERSION_H

#include <stdint.h>

/* The only place that states the version: CMakeLists.txt reads these three lines. */
#define ASHLAR_VERSION_MAJOR 0
#define ASHLAR_VERSION_MINOR 2
#define ASHLAR_VERSION_PATCH 0

/* For #if: 10203 is 1.2.3. */
#define ASHLAR_VERSION_NUMBER \
  (ASHLAR_VERSION_MAJOR * 10000 + ASHLAR_VERSION_MINOR * 100 + ASHLAR_VERSION_PATCH)

/* "1.2.3" */
#define ASHLAR_VERSION \
  ASHLAR_QUOTED_(ASHLAR_VERSION_MAJOR, ASHLAR_VERSION_MINOR, ASHLAR_VERSION_PATCH)
#define ASHLAR_QUOTED_(major, minor, patch) ASHLAR_QUOTED_EACH_(major, minor, patch)
#define ASHLAR_QUOTED_EACH_(major, minor, patch) #major "." #minor "." #patch

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The version of the library that the program runs with: the values of ASHLAR_VERSION and
 * ASHLAR_VERSION_NUMBER when it was built. */
const char* ashlar_version(void);
int32_t ashlar_version_number(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
