/* SPDX-License-Identifier: Apache-2.0 */
/* model/npt_inputs.c - parses train.adapter.inputs at each query. */
#include "model/npt_inputs.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/words.h"

/* Reads teacher, student, detached or mixed:SHARE, with @STEP or not. */
static bool read_inputs(const char *word, hr_npt_inputs *inputs, hr_npt_phase *phase)
{
    char text[HR_WORD_BYTES];
    snprintf(text, sizeof text, "%s", word);
    char *at = strchr(text, '@');
    *phase = (hr_npt_phase){ 0, 0 };
    if (at) *at = 0;
    if (at && (!hr_integer_parse(at + 1, &phase->step) || phase->step < 0)) return false;
    *inputs = !strcmp(text, "teacher")           ? HR_NPT_TEACHER
              : !strcmp(text, "student")         ? HR_NPT_STUDENT
              : !strcmp(text, "detached") && !at ? HR_NPT_DETACHED
                                                 : HR_NPT_MIXED;
    phase->share = *inputs == HR_NPT_STUDENT;
    if (*inputs != HR_NPT_MIXED) return true;
    return !strncmp(text, "mixed:", 6) && hr_real_parse(text + 6, &phase->share) &&
           phase->share >= 0 && phase->share <= 1;
}

hr_npt_inputs hr_npt_inputs_of(const hr_config *config, hr_npt_phase phases[HR_NPT_PHASES_MOST],
                               int32_t *count)
{
    hr_npt_inputs inputs = HR_NPT_TEACHER;
    *count = 0;
    for (hr_words w = { config->train.adapter.inputs };
         *count < HR_NPT_PHASES_MOST && hr_words_next(&w);)
        if (read_inputs(w.text, &inputs, &phases[*count])) ++*count;
    return *count > 1 ? HR_NPT_MIXED : inputs;
}

hr_status hr_npt_inputs_check(const char *text, hr_error *err)
{
    hr_npt_inputs inputs = HR_NPT_TEACHER;
    hr_npt_phase phase, before = { -1, 0 };
    int32_t count = 0;
    bool detached = false;
    for (hr_words w = { text }; hr_words_next(&w); count++, before = phase) {
        if (!read_inputs(w.text, &inputs, &phase))
            return hr_fail(err, HR_USAGE,
                           "train.adapter.inputs: \"%s\" is not teacher, student, detached or "
                           "mixed:SHARE with a share from 0 to 1, with @STEP or not",
                           w.text);
        if (phase.step <= before.step || (!count && phase.step > 0) || count == HR_NPT_PHASES_MOST)
            return hr_fail(err, HR_USAGE,
                           "train.adapter.inputs: \"%s\": the first of at most %d phases begins "
                           "at step 0, and each later one at @STEP after the one before",
                           w.text, HR_NPT_PHASES_MOST);
        detached |= inputs == HR_NPT_DETACHED;
    }
    if (!detached || count == 1) return HR_OK;
    return hr_fail(err, HR_USAGE,
                   "train.adapter.inputs: detached has no gradient between layers, so it is not "
                   "one of several phases");
}
