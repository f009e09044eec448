/* SPDX-License-Identifier: Apache-2.0 */
/* tests/hf/config_case.h - reads a text as config.json of a folder. */
#ifndef HR_TESTS_HF_CONFIG_CASE_H
#define HR_TESTS_HF_CONFIG_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "config/config_keys.h"
#include "hf/hf_config.h"
#include "support/in_folder.h"

static inline hr_status read_text(const char *text, hr_config *config, hr_error *err)
{
    hr_folder_write(hr_folder_path(&folder, "config.json"), text, (int64_t)strlen(text));
    hr_config_default(config);
    return hr_hf_config_read(folder.path, config, err);
}

static inline void is_taken(const char *text, hr_config *config)
{
    hr_error err;
    if (read_text(text, config, &err) != HR_OK) fail_msg("%s: %s", text, err.message);
}

static inline void key_is(const hr_config *config, const char *key, const char *expected)
{
    char text[HR_PATH_BYTES];
    assert_int_equal(hr_config_get(config, key, text, sizeof text, NULL), HR_OK);
    assert_string_equal(text, expected);
}

#endif
