/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - plans a recipe with the library, and prints its bytes.
 *
 *     cc plan.c -o plan $(pkg-config --cflags --libs headroom)
 *     ./plan recipe.yaml 4GiB */
#include <stdio.h>

#include <headroom/config.h>
#include <headroom/plan.h>

int main(int argc, char **argv)
{
    hr_error err;
    hr_plan_answer answer;
    hr_config *config = hr_config_new();
    hr_status status = !config    ? hr_fail(&err, HR_FAILURE, "no memory")
                       : argc > 1 ? hr_config_read(config, argv[1], &err)
                                  : hr_fail(&err, HR_USAGE, "usage: plan RECIPE.yaml [BUDGET]");
    if (status == HR_OK && argc > 2) status = hr_config_set(config, "memory.budget", argv[2], &err);
    if (status == HR_OK) status = hr_config_adopt(config, &err);
    if (status == HR_OK) status = hr_config_adopt_data(config, &err);
    if (status == HR_OK) status = hr_plan_make(config, NULL, &answer, &err);
    hr_config_free(config);
    if (status != HR_OK) {
        fprintf(stderr, "plan: %s\n", err.message);
        return status;
    }
    printf("%lld parameters, %lld bytes, %.3g s per step\n", (long long)answer.parameters,
           (long long)answer.process_bytes, answer.step_seconds);
    return 0;
}
