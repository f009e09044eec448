/* SPDX-License-Identifier: Apache-2.0 */
/* headroom/version.h - the version of the library, as CMakeLists.txt has it. */
#ifndef HEADROOM_VERSION_H
#define HEADROOM_VERSION_H

#define HR_VERSION "0.1.0"

#endif
