/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate/modulation.c - plain loops over the few numbers of a token. */
#include "evaluate/modulation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/element.h"
#include "base/number.h"
#include "base/words.h"
#include "base/writer.h"
#include "checkpoint/names.h"

enum { LENGTH_BYTES = 8, HEADER_ALIGN = 64, ENTRY_BYTES = 200, PIECE = 1024 };

static bool begins(const hr_program *program, int32_t p)
{
    const hr_param *param = &program->params[p];
    const bool first = param->adapts != HR_NONE && program->params[param->adapts].adapter == p;
    return first && param->rule.form != HR_ADAPTER_LOW_RANK && !param->rule.off;
}

static bool is_diagonal(const hr_program *program, int32_t p)
{
    return program->params[p].rule.form == HR_ADAPTER_DIAGONAL;
}

int64_t hr_modulation_bytes(const hr_program *program, int32_t captured)
{
    int64_t bytes = 2 * 64, most = 0;
    for (int32_t p = 0; p < program->param_count; p++) {
        if (!begins(program, p)) continue;
        const int64_t N = program->params[p].dims[1];
        most = hr_max(most, N);
        bytes += (int64_t)sizeof(hr_modulated) + (2 * N + captured) * N * (int64_t)sizeof(float) +
                 3 * 64;
    }
    return bytes + most * (int64_t)sizeof(float);
}

hr_status hr_modulation_open(hr_modulation *m, const hr_program *program, const int64_t *positions,
                             int32_t captured, hr_region *region, hr_error *err)
{
    *m = (hr_modulation){ .program = program, .positions = positions, .captured = captured };
    for (int32_t p = 0; p < program->param_count; p++) m->count += begins(program, p);
    m->all = hr_region_take(region, m->count, sizeof *m->all);
    bool room = m->all || !m->count;
    int64_t most = 0;
    for (int32_t p = 0, i = 0; p < program->param_count && room; p++) {
        if (!begins(program, p)) continue;
        const hr_param *param = &program->params[p];
        const int64_t N = param->dims[1];
        m->all[i] = (hr_modulated){ .param = p,
                                    .N = N,
                                    .R = N / hr_max(param->rule.stack, 1),
                                    .of_x = hr_region_take(region, N * N, sizeof(float)),
                                    .of_y = hr_region_take(region, N * N, sizeof(float)),
                                    .rows = hr_region_take(region, captured * N, sizeof(float)) };
        room = m->all[i].of_x && m->all[i].of_y && (m->all[i].rows || !captured);
        most = hr_max(most, N);
        i++;
    }
    m->row = hr_region_take(region, most, sizeof *m->row);
    room = room && (m->row || !most);
    if (room) return HR_OK;
    return hr_fail(err, HR_FAILURE, "out of memory for the sizes of changes");
}

/* Appends N or N-M. False: something else, or too many. */
static bool add_positions(const char *word, int64_t *positions, int32_t *count)
{
    int64_t first, last;
    char text[64];
    snprintf(text, sizeof text, "%.63s", word);
    char *dash = strchr(text, '-');
    if (dash) *dash = 0;
    if (!hr_integer_parse(text, &first) || first < 0) return false;
    last = first;
    if (dash && !hr_integer_parse(dash + 1, &last)) return false;
    for (; first <= last; first++) {
        if (*count == HR_CAPTURED_MOST) return false;
        positions[(*count)++] = first;
    }
    return true;
}

hr_status hr_modulation_positions(const char *list, int64_t length,
                                  int64_t positions[HR_CAPTURED_MOST], int32_t *count,
                                  hr_error *err)
{
    positions[0] = length - 1;
    *count = list ? 0 : 1;
    for (hr_words w = { list ? list : "" }; hr_words_next(&w);)
        if (!add_positions(w.text, positions, count))
            return hr_fail(err, HR_USAGE,
                           "--positions: \"%.40s\" is not a token such as 3 or 0-3, at most %d of "
                           "them",
                           w.text, HR_CAPTURED_MOST);
    for (int32_t i = 1; i < *count; i++)
        if (positions[i] <= positions[i - 1])
            return hr_fail(err, HR_USAGE, "--positions must rise: %lld follows %lld",
                           (long long)positions[i], (long long)positions[i - 1]);
    if (*count && positions[*count - 1] >= length)
        return hr_fail(err, HR_USAGE, "--positions: the sequence has tokens 0 to %lld, not %lld",
                       (long long)length - 1, (long long)positions[*count - 1]);
    return HR_OK;
}

/* ---- weights */

static float element(const hr_program *program, int32_t param, const void *weight, int64_t k,
                     int64_t n)
{
    const hr_param *of = &program->params[param];
    const hr_tensor *tensor = &program->tensors[of->weight];
    const int64_t at = hr_layout_index((hr_layout)tensor->layout, of->dims[0], of->dims[1], k, n);
    return hr_element_get(weight, at, (hr_dtype)tensor->dtype);
}

/* The part that projects x: A of the diagonal form, else Wa. */
static int32_t part_of_x(const hr_program *program, int32_t p)
{
    return is_diagonal(program, p) ? p : p + 2;
}

void hr_modulation_measure(hr_modulation *m, const hr_executor *executor)
{
    const hr_program *program = m->program;
    for (int32_t i = 0; i < m->count; i++) {
        hr_modulated *of = &m->all[i];
        const int32_t x = part_of_x(program, of->param), y = of->param + 1;
        const void *wx = hr_executor_address(executor, program->params[x].weight);
        const void *wy = hr_executor_address(executor, program->params[y].weight);
        for (int64_t c = 0; c < of->N; c++)
            for (int64_t d = 0; d < of->N; d++) {
                double sum_x = 0, sum_y = 0;
                for (int64_t k = 0; k < program->params[x].dims[0]; k++)
                    sum_x += (double)element(program, x, wx, k, c) *
                             (double)element(program, x, wx, k, d);
                for (int64_t n = 0; n < program->params[y].dims[1]; n++)
                    sum_y += (double)element(program, y, wy, c, n) *
                             (double)element(program, y, wy, d, n);
                of->of_x[c * of->N + d] = (float)sum_x;
                of->of_y[c * of->N + d] = (float)sum_y;
            }
    }
}

/* ---- tokens */

/* i_j' G i_l over two groups of R. */
static double form(const float *gram, const float *u, int64_t N, int64_t R, int64_t j, int64_t l)
{
    double sum = 0;
    for (int64_t c = j * R; c < (j + 1) * R; c++)
        for (int64_t d = l * R; d < (l + 1) * R; d++)
            sum += (double)u[c] * (double)gram[c * N + d] * (double)u[d];
    return sum;
}

/* The norm of the change for one token. */
static double norm_of(const hr_program *program, const hr_modulated *of, const float *u)
{
    const double scale = (double)program->params[of->param].adapter_scale;
    const int64_t N = of->N;
    double square = 0;
    if (!is_diagonal(program, of->param)) {
        for (int64_t j = 0; j < N / of->R; j++)
            for (int64_t l = 0; l < N / of->R; l++)
                square += form(of->of_x, u, N, of->R, j, l) * form(of->of_y, u, N, of->R, j, l);
        return fabs(scale) * sqrt(fmax(square, 0));
    }
    for (int64_t c = 0; c < N; c++)
        for (int64_t d = 0; d < N; d++)
            square += tanh((double)u[c]) * tanh((double)u[d]) * (double)of->of_x[c * N + d] *
                      (double)of->of_y[c * N + d];
    return fabs(scale) * sqrt(fmax(square, 0));
}

static void widen(const void *row, hr_dtype dtype, int64_t count, float *to)
{
    for (int64_t c = 0; c < count; c++) to[c] = hr_element_get(row, c, dtype);
}

void hr_modulation_take(hr_modulation *m, int32_t param, const void *rows, hr_dtype dtype,
                        int64_t first, int64_t count, const int32_t *targets)
{
    int32_t i = 0;
    while (i < m->count && m->all[i].param != param) i++;
    if (i == m->count) return;
    hr_modulated *of = &m->all[i];
    for (int64_t r = 0; r < count; r++) {
        const char *row = (const char *)rows + r * of->N * hr_dtype_bytes(dtype);
        float *u = m->row;
        widen(row, dtype, of->N, u);
        for (int32_t c = 0; c < m->captured; c++)
            if (m->positions[c] == first + r)
                memcpy(of->rows + c * of->N, u, (size_t)of->N * sizeof *u);
        if (targets[r] < 0) continue;
        of->norms += norm_of(m->program, of, u);
        of->tokens++;
    }
}

int32_t hr_modulation_report(const hr_modulation *m, hr_evaluate_change *changes, int32_t most)
{
    const hr_program *program = m->program;
    const int32_t count = m->count < most ? m->count : most;
    for (int32_t i = 0; i < count; i++) {
        const hr_modulated *of = &m->all[i];
        const hr_param *param = &program->params[program->params[of->param].adapts];
        changes[i] = (hr_evaluate_change){ .layer = program->tensors[param->weight].layer,
                                           .norm = of->tokens ? of->norms / (double)of->tokens
                                                              : 0 };
        char module[HR_MODULE_BYTES];
        hr_module_of(param->external_name, module);
        snprintf(changes[i].module, sizeof changes[i].module, "%.31s", hr_name_in_layer(module));
    }
    return count;
}

/* ---- captures */

/* The name of a tensor: that of the module with an end. */
static void put_name(const hr_modulation *m, int32_t i, const char *end, hr_writer *w)
{
    const hr_param *params = m->program->params;
    const char *name = params[params[m->all[i].param].adapts].external_name;
    hr_put(w, "%.*s.%s", (int)hr_module_length(name), name, end);
}

static void put_tensor(const hr_modulation *m, int32_t i, const char *end, int64_t width,
                       int64_t *offset, hr_writer *w)
{
    const hr_modulated *of = &m->all[i];
    const int64_t k = of->N / of->R;
    const bool diagonal = is_diagonal(m->program, of->param);
    const int64_t bytes = m->captured * (diagonal ? 1 : k) * width * (int64_t)sizeof(float);
    hr_put(w, ",\"");
    put_name(m, i, end, w);
    hr_put(w, "\":{\"dtype\":\"F32\",\"shape\":[%d,", (int)m->captured);
    if (!diagonal) hr_put(w, "%lld,", (long long)k);
    hr_put(w, "%lld],\"data_offsets\":[%lld,%lld]}", (long long)width, (long long)*offset,
           (long long)(*offset + bytes));
    *offset += bytes;
}

const char hr_capture_first[] = "{\"__metadata__\":{\"format\":\"pt\"},\"positions\":{";
_Static_assert((int)LENGTH_BYTES == (int)HR_CAPTURE_FIRST_AT,
               "the length of the header comes first");

static void put_header(const hr_modulation *m, hr_writer *w)
{
    int64_t offset = m->captured * (int64_t)sizeof(int64_t);
    hr_put(w, "%s\"dtype\":\"I64\",\"shape\":[%d],\"data_offsets\":[0,%lld]}", hr_capture_first,
           (int)m->captured, (long long)offset);
    for (int32_t i = 0; i < m->count; i++) {
        const int32_t p = m->all[i].param;
        if (is_diagonal(m->program, p)) {
            put_tensor(m, i, "m", m->all[i].N, &offset, w);
            continue;
        }
        put_tensor(m, i, "va", m->program->params[p + 2].dims[0], &offset, w);
        put_tensor(m, i, "vb", m->program->params[p + 1].dims[1], &offset, w);
    }
    hr_put(w, "}");
    while ((w->used + LENGTH_BYTES) % HEADER_ALIGN && !w->cut) hr_put(w, " ");
}

/* Appends one vector of group j: i times Wa, or times Wb. */
static hr_status append_vector(const hr_modulation *m, const hr_executor *executor, int32_t i,
                               int32_t part, const float *u, int64_t j, hr_file_out *out,
                               hr_error *err)
{
    const hr_modulated *of = &m->all[i];
    const bool of_rows = part == of->param + 1;
    const hr_param *param = &m->program->params[part];
    const void *weight = hr_executor_address(executor, param->weight);
    const int64_t width = of_rows ? param->dims[1] : param->dims[0];
    float piece[PIECE];
    hr_status status = HR_OK;
    for (int64_t first = 0; first < width && status == HR_OK; first += PIECE) {
        const int64_t count = hr_min(PIECE, width - first);
        for (int64_t n = 0; n < count; n++) {
            double sum = 0;
            for (int64_t c = j * of->R; c < (j + 1) * of->R; c++)
                sum += (double)u[c] *
                       (double)(of_rows ? element(m->program, part, weight, c, first + n)
                                        : element(m->program, part, weight, first + n, c));
            piece[n] = (float)sum;
        }
        status = hr_file_append(out, piece, count * (int64_t)sizeof *piece, err);
    }
    return status;
}

static hr_status append_diagonal(const hr_modulation *m, int32_t i, hr_file_out *out, hr_error *err)
{
    const hr_modulated *of = &m->all[i];
    const double scale = (double)m->program->params[of->param].adapter_scale;
    hr_status status = HR_OK;
    for (int64_t c = 0; c < m->captured * of->N && status == HR_OK; c++) {
        const float value = (float)(scale * tanh((double)of->rows[c]));
        status = hr_file_append(out, &value, sizeof value, err);
    }
    return status;
}

static hr_status append_outer(const hr_modulation *m, const hr_executor *executor, int32_t i,
                              hr_file_out *out, hr_error *err)
{
    const hr_modulated *of = &m->all[i];
    const int32_t parts[] = { of->param + 2, of->param + 1 };
    hr_status status = HR_OK;
    for (int32_t k = 0; k < 2; k++)
        for (int32_t c = 0; c < m->captured; c++)
            for (int64_t j = 0; j < of->N / of->R && status == HR_OK; j++)
                status = append_vector(m, executor, i, parts[k], of->rows + c * of->N, j, out, err);
    return status;
}

hr_status hr_modulation_write(const hr_modulation *m, const hr_executor *executor, hr_file_out *out,
                              hr_error *err)
{
    char text[LENGTH_BYTES + 8192 * 8];
    hr_writer w = { text + LENGTH_BYTES, (int64_t)sizeof text - LENGTH_BYTES };
    put_header(m, &w);
    if (w.cut)
        return hr_fail(err, HR_USAGE,
                       "a capture of %d matrices is too large; switch fewer layers with "
                       "--npt-layers",
                       (int)m->count);
    for (int32_t i = 0; i < LENGTH_BYTES; i++) text[i] = (char)((uint64_t)w.used >> (8 * i));
    hr_status status = hr_file_append(out, text, w.used + LENGTH_BYTES, err);
    if (status == HR_OK)
        status = hr_file_append(out, m->positions, m->captured * (int64_t)sizeof *m->positions,
                                err);
    for (int32_t i = 0; i < m->count && status == HR_OK; i++)
        status = is_diagonal(m->program, m->all[i].param) ? append_diagonal(m, i, out, err)
                                                          : append_outer(m, executor, i, out, err);
    return status;
}
