/* SPDX-License-Identifier: Apache-2.0 */
/* bench/random_model.c - writes a folder with a model of random weights in the shape of a recipe,
 * so that a large one can be tried without a download. Constants such as biases of 0 are holes.
 *
 *     random_model RECIPE.yaml FOLDER [bf16 | f32 [SEED]]
 *
 * Weights are normal with the standard deviations that training starts from, and constants as they
 * are. The tensors are those of model.safetensors, and config.json is that of a finished run. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bf16.h"
#include "base/checked.h"
#include "base/random.h"
#include "checkpoint/weights.h"
#include "config/config.h"
#include "hf/hf_config.h"
#include "ops/backends.h"
#include "sections/generation.h"

enum { PIECE_BYTES = 8 << 20, NORMALS = 1 << 16 };

static void stop(const char *why)
{
    fprintf(stderr, "random_model: %s\n", why);
    exit(1);
}

static double seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Prints the header; returns its bytes. */
static int64_t print_header(const hr_program *program, bool wide, char *text, int64_t bytes,
                            int64_t *data_bytes)
{
    int64_t used = 8, end = 0;
    for (int32_t p = 0; p < program->param_count; p++) {
        const hr_kept_shape shape = hr_kept_shape_of(program, p, HR_KEPT_WEIGHTS);
        const int64_t first = end;
        char width[32] = "";
        if (!shape.vector)
            snprintf(width, sizeof width, ",%lld", (long long)hr_weights_width(shape));
        end += shape.K * shape.N * (wide ? 4 : 2);
        used += snprintf(
            text + used, (size_t)(bytes - used),
            "%c\"%s\":{\"dtype\":\"%s\",\"shape\":[%lld%s],\"data_offsets\":[%lld,%lld]}",
            p ? ',' : '{', program->params[p].external_name, wide ? "F32" : "BF16",
            (long long)hr_weights_rows(shape), width, (long long)first, (long long)end);
    }
    used += snprintf(text + used, (size_t)(bytes - used), "}");
    for (; used % 8; used++) text[used] = ' ';
    for (int32_t i = 0; i < 8; i++) text[i] = (char)((uint64_t)(used - 8) >> (8 * i));
    *data_bytes = end;
    return used;
}

/* A table of normal numbers, which 16 random bits choose from. */
static void fill_normals(float *normals)
{
    for (int32_t i = 0; i < NORMALS; i += 2) {
        const double u = ((double)(uint32_t)hr_random_mix((uint64_t)i) + 1) / 4294967296.0;
        const double turn = 6.283185307179586 * (double)(uint32_t)hr_random_mix((uint64_t)i + 1) /
                            4294967296.0;
        normals[i] = (float)(sqrt(-2 * log(u)) * cos(turn));
        normals[i + 1] = (float)(sqrt(-2 * log(u)) * sin(turn));
    }
}

static void write_all(int file, const void *bytes, int64_t count, int64_t at)
{
    if (pwrite(file, bytes, (size_t)count, (off_t)at) != (ssize_t)count)
        stop("the file cannot be written");
}

static void write_param(int file, const hr_param *param, int64_t elements, bool wide,
                        const float *normals, uint64_t state, int64_t at)
{
    static uint32_t piece[PIECE_BYTES / 4];
    const int64_t size = wide ? 4 : 2;
    if (param->init_constant && param->init_scale == 0) return; /* a hole */
    for (int64_t done = 0; done < elements;) {
        const int64_t count = hr_min(elements - done, PIECE_BYTES / size);
        uint64_t bits = 0;
        for (int64_t i = 0; i < count; i++) {
            if (i % 4 == 0) bits = hr_random_mix(state++);
            const float one = param->init_constant ? 1 : normals[bits >> 16 * (i % 4) & 0xffff];
            const float value = (float)param->init_scale * one;
            if (wide) memcpy(&piece[i], &value, sizeof value);
            else ((hr_bf16 *)piece)[i] = hr_bf16_from_f32(value);
        }
        write_all(file, piece, count * size, at + done * size);
        done += count;
    }
}

static void write_config(const hr_config *config, const char *folder)
{
    static char text[1 << 16];
    char path[4096];
    hr_writer w = { text, sizeof text };
    hr_hf_config_write(config, HR_WEIGHTS_COMPUTE, &w);
    snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *file = fopen(path, "w");
    if (!file || fwrite(text, 1, (size_t)w.used, file) != (size_t)w.used || fclose(file))
        stop("config.json cannot be written");
}

int main(int count, char **words)
{
    static hr_config config;
    static float normals[NORMALS];
    hr_error err;
    hr_program program;
    if (count < 3) stop("usage: random_model RECIPE.yaml FOLDER [bf16 | f32 [SEED]]");
    const bool wide = count > 3 && !strcmp(words[3], "f32");
    const uint64_t seed = count > 4 ? strtoull(words[4], NULL, 10) : 1;
    hr_config_default(&config);
    if (hr_config_read(&config, words[1], &err) != HR_OK) stop(err.message);
    config.train.adapter = (hr_config_adapter){ .kind = HR_ADAPTER_NONE };
    const int64_t memory = 256 << 20;
    hr_region region = hr_region_over(malloc((size_t)memory), memory);
    if (hr_model_assemble_generation(&config, hr_backend_find(HR_BACKEND_DEFAULT), 1, 0, &region,
                                     &program, &err) != HR_OK)
        stop(err.message);
    const int64_t text_bytes = 1 << 24;
    char *text = malloc((size_t)text_bytes), path[4096];
    int64_t bytes, at = print_header(&program, wide, text, text_bytes, &bytes);
    const double start = seconds();
    printf("%s/model.safetensors: %lld bytes, about %.0f s at 400 MB/s\n", words[2],
           (long long)(at + bytes), (double)bytes / 400e6);
    fflush(stdout);
    if (mkdir(words[2], 0777)) stop("the folder cannot be made, or is there");
    snprintf(path, sizeof path, "%s/model.safetensors", words[2]);
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (file < 0 || ftruncate(file, (off_t)(at + bytes))) stop("the file cannot be made");
    write_all(file, text, at, 0);
    fill_normals(normals);
    for (int32_t p = 0; p < program.param_count; p++) {
        const hr_kept_shape shape = hr_kept_shape_of(&program, p, HR_KEPT_WEIGHTS);
        write_param(file, &program.params[p], shape.K * shape.N, wide, normals,
                    hr_random_mix(seed + ((uint64_t)p << 32)), at);
        at += shape.K * shape.N * (wide ? 4 : 2);
    }
    if (close(file)) stop("the file cannot be written");
    write_config(&config, words[2]);
    printf("written in %.1f s\n", seconds() - start);
    return 0;
}
