/* SPDX-License-Identifier: Apache-2.0 */
/* admission/levers.h - the keys of a recipe that reduce the memory of its run, as a table.
 *
 * A lever is a key and the values that it may take, from the gentlest to the strongest. A new one
 * is a row in levers.c. What it saves is found by planning (admission/refuse.c), never here. */
#ifndef HR_ADMISSION_LEVERS_H
#define HR_ADMISSION_LEVERS_H

#include "config/config.h"
#include "graph/program.h"

/* What a lever costs besides time, cheapest first. All but the first change the mathematics. */
typedef enum {
    HR_LOSS_NOTHING,
    HR_LOSS_ROUNDING,
    HR_LOSS_UPDATES, /* optimizer, batch */
    HR_LOSS_TRAINED, /* parameters that are trained */
    HR_LOSS_WINDOWS, /* sequence length, what attention sees */
    HR_LOSS_RANK,    /* rank of a factorized matrix */
    HR_LOSS_WORDS,
    HR_LOSS_MODEL
} hr_loss;

/* Names of parameters, for patterns of train.freeze. */
typedef struct {
    char before[160]; /* parameters before the layers, between commas */
    char layers[64];  /* of a layer's parameters, up to its number: "model.layers." */
    bool attention;   /* "att" names adapters of a layer */
} hr_lever_names;

enum { HR_LEVER_VALUE_BYTES = 240 };

typedef struct {
    const char *key;
    hr_loss loss;
    const char *price;    /* costs other than time, or ""; for people */
    const char *value;    /* the only value; null: the key is halved, or `write` says */
    const char *with;     /* "key=value key=value" that go with it; null: none */
    int64_t least;        /* of a halved key */
    uint32_t traits;      /* the family has one of them (model/family.h); 0: any family */
    uint32_t without;     /* the family has none of them */
    const char *why_none; /* why it may save nothing, for levers that people expect to; null: it is
                           * then not reported */

    /* Whether it applies to a recipe; null: always. */
    bool (*applies)(const hr_config *config);

    /* The number to halve, if the key may hold a word; null: the value of the key. */
    int64_t (*start)(const hr_config *config);

    /* Writes the value of a step for people to paste, and returns the share that is left of what it
     * reduces; 0: no such step. Null: halved or `value`. */
    double (*write)(const hr_config *config, const hr_lever_names *names, int32_t step,
                    char value[HR_LEVER_VALUE_BYTES]);
} hr_lever;

enum { HR_LEVERS_MOST = 48 };

/* The table. Writes the number of rows. */
const hr_lever *hr_levers(int32_t *count);

/* Takes the names from the program of a recipe. */
void hr_lever_names_of(const hr_program *program, hr_lever_names *names);

/* The number of steps of a lever for a recipe; 0: it does not apply, or its key has the value
 * already. Steps count from 1, the gentlest; the recipe is valid with each of them. */
int32_t hr_lever_steps(const hr_lever *lever, const hr_config *config, const hr_lever_names *names);

/* Of a lever that applies: sets the key to the value of a step, and what goes with it. Writes the
 * value with the quotes that a shell needs: 8, "", '*.layers.?.*', and then what goes with it.
 * Returns the share that is left of what the lever reduces, in (0, 1]; 0: there is no such step, or
 * the recipe is not valid with it and is unchanged. */
double hr_lever_apply(const hr_lever *lever, const hr_lever_names *names, int32_t step,
                      hr_config *config, char value[HR_LEVER_VALUE_BYTES]);

#endif
