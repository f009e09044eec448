/* SPDX-License-Identifier: Apache-2.0 */
/* train.c - trains a recipe with the library. Ctrl-C saves and ends; the same command resumes.
 *
 *     cc train.c -o train $(pkg-config --cflags --libs headroom)
 *     ./train recipe.yaml data.train=text.txt train.steps=10 train.out=run */
#include <signal.h>
#include <stdio.h>

#include <headroom/config.h>
#include <headroom/train.h>

static volatile sig_atomic_t interrupts;

static void interrupt(int number)
{
    (void)number;
    interrupts = interrupts + 1;
}

static void show(void *context, const hr_train_step *step)
{
    (void)context;
    printf("step %lld of %lld: loss %.4f\n", (long long)step->step, (long long)step->steps,
           step->loss);
}

int main(int argc, char **argv)
{
    static char buffer[BUFSIZ]; /* training must not allocate */
    hr_error err;
    hr_config *config = hr_config_new();
    hr_train_result result;
    const hr_train_options options = { .size = sizeof options,
                                       .events.step = show,
                                       .interrupts = &interrupts };
    setvbuf(stdout, buffer, _IOLBF, sizeof buffer);
    signal(SIGINT, interrupt);
    hr_status status = !config ? hr_fail(&err, HR_FAILURE, "no memory")
                       : argc > 1
                           ? hr_config_read(config, argv[1], &err)
                           : hr_fail(&err, HR_USAGE, "usage: train RECIPE.yaml [key=value ...]");
    for (int i = 2; status == HR_OK && i < argc; i++)
        status = hr_config_set_word(config, argv[i], &err);
    if (status == HR_OK) status = hr_config_adopt(config, &err);
    if (status == HR_OK) status = hr_config_adopt_data(config, &err);
    if (status == HR_OK) status = hr_train(config, &options, &result, &err);
    if (status == HR_OK)
        printf("planned %lld bytes, measured %lld\n", (long long)result.process_bytes_planned,
               (long long)result.process_bytes_measured);
    else fprintf(stderr, "train: %s\n", err.message);
    hr_config_free(config);
    return status;
}
