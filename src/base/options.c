/* SPDX-License-Identifier: Apache-2.0 */
/* base/options.c - see options.h. */
#include "base/options.h"

#include <string.h>

hr_status hr_options_take(void *own, size_t own_size, const void *given, hr_error *err)
{
    size_t size = own_size;
    memset(own, 0, own_size);
    if (given) memcpy(&size, given, sizeof size);
    if (size < sizeof size)
        return hr_fail(err, HR_USAGE,
                       "the member size of options is %zu: it is sizeof their struct", size);
    for (size_t i = own_size; given && i < size; i++)
        if (((const char *)given)[i])
            return hr_fail(err, HR_USAGE,
                           "options have %zu bytes, of which this version of the library knows %zu",
                           size, own_size);
    if (given) memcpy(own, given, size < own_size ? size : own_size);
    memcpy(own, &own_size, sizeof own_size);
    return HR_OK;
}
