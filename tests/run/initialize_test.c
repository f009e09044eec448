/* SPDX-License-Identifier: Apache-2.0 */
/* initialize_test.c - an interrupt ends the initialization of a large parameter. */
#include <signal.h>
#include <sys/time.h>

#include "require.h"
#include "run/initialize.h"
#include "sections/assemble.h"
#include "support/compiled.h"

enum { ROWS = 512, WORDS = 16384 };

typedef struct {
    compiled c;
    const hr_program *program;
    int32_t index; /* of the head: ROWS x WORDS */
    int64_t elements;
    float *master;
    uint16_t *weight;
} parameter;

static volatile sig_atomic_t raised;

static void raise_flag(int number)
{
    (void)number;
    raised = 1;
}

/* The head of a bf16 recipe, so that master and weight are separate. */
static void open_parameter(parameter *p)
{
    hr_config config;
    hr_config_default(&config);
    config.model.vocab_size = WORDS;
    config.model.d_model = ROWS;
    config.model.n_layers = 1;
    config.train.batch = 1;
    config.train.seq_len = 8;
    config.train.dtype = HR_FORMAT_BF16;
    hr_intermediates recompute_set[1];
    const hr_strategy strategy = hr_strategy_of(&config, 1, recompute_set);
    compile(&p->c, &config, &strategy);
    p->program = &p->c.of.program;
    p->index = 0;
    while (p->program->params[p->index].dims[1] != WORDS) p->index++;
    const hr_param *param = &p->program->params[p->index];
    assert_int_equal(param->dims[0], ROWS);
    assert_true(param->weight != param->master);
    const int64_t bytes = hr_tensor_bytes(&p->program->tensors[param->master]);
    p->elements = bytes / (int64_t)sizeof *p->master;
    p->master = malloc((size_t)bytes);
    p->weight = malloc((size_t)bytes / 2);
    memset(p->master, 0xff, (size_t)bytes);
    memset(p->weight, 0xff, (size_t)bytes / 2);
}

static void close_parameter(parameter *p)
{
    free(p->c.memory);
    free(p->master);
    free(p->weight);
}

/* Returns the number of nonzero elements of a row. */
static int64_t written(const parameter *p, int64_t row)
{
    const hr_param *param = &p->program->params[p->index];
    const hr_layout layout = (hr_layout)p->program->tensors[param->master].layout;
    int64_t count = 0;
    for (int64_t n = 0; n < WORDS; n++)
        count += p->master[hr_layout_index(layout, ROWS, WORDS, row, n)] != 0;
    return count;
}

static void weight_is_unchanged(const parameter *p)
{
    for (int64_t i = 0; i < p->elements; i++) assert_int_equal(p->weight[i], 0xffff);
}

static void without_an_interrupt_everything_is_written(void **state)
{
    (void)state;
    const volatile sig_atomic_t none = 0;
    parameter p;
    open_parameter(&p);
    hr_initialize(p.program, p.index, 1, (hr_weights_place){ p.master, p.weight, NULL }, &none);
    assert_true(written(&p, 0) > WORDS / 2);
    assert_true(written(&p, ROWS - 1) > WORDS / 2);
    for (int64_t i = 0; i < p.elements; i++) assert_int_not_equal(p.weight[i], 0xffff);
    close_parameter(&p);
}

static void after_an_interrupt_nothing_is_written(void **state)
{
    (void)state;
    const volatile sig_atomic_t before = 1;
    parameter p;
    open_parameter(&p);
    hr_initialize(p.program, p.index, 1, (hr_weights_place){ p.master, p.weight, NULL }, &before);
    assert_int_equal(written(&p, 0), 0);
    assert_int_equal(written(&p, ROWS - 1), 0);
    weight_is_unchanged(&p);
    close_parameter(&p);
}

/* The interrupt comes from a timer of process time. If the head is complete it was too late, and
 * the next comes earlier; if nothing was written it was too early, and the next comes later. */
static void an_interrupt_stops_in_the_middle(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    hr_test_skip("no-sanitizer", "ThreadSanitizer delays signals until the program waits");
#endif
    int64_t wait = 40000, seen = 0;
    parameter p;
    open_parameter(&p);
    assert_true(signal(SIGVTALRM, raise_flag) != SIG_ERR);
    for (int32_t turn = 0; turn < 20 && !seen; turn++) {
        memset(p.weight, 0xff, (size_t)p.elements * sizeof *p.weight);
        raised = 0;
        const struct itimerval once = { .it_value = { .tv_usec = wait } }, never = { 0 };
        assert_int_equal(setitimer(ITIMER_VIRTUAL, &once, NULL), 0);
        hr_initialize(p.program, p.index, 1, (hr_weights_place){ p.master, p.weight, NULL },
                      &raised);
        assert_int_equal(setitimer(ITIMER_VIRTUAL, &never, NULL), 0);
        if (!raised) wait = wait / 2 + 1;
        else if (!written(&p, 0)) wait = wait * 3 / 2;
        else seen = !written(&p, ROWS - 1);
    }
    assert_true(seen);
    weight_is_unchanged(&p);
    close_parameter(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_an_interrupt_everything_is_written),
        cmocka_unit_test(after_an_interrupt_nothing_is_written),
        cmocka_unit_test(an_interrupt_stops_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
