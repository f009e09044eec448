/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/adapter_config.h - adapter_config.json of PEFT, which describes adapters. */
#ifndef HR_CHECKPOINT_ADAPTER_CONFIG_H
#define HR_CHECKPOINT_ADAPTER_CONFIG_H

#include "base/writer.h"
#include "graph/program.h"
#include "headroom/config.h"

/* Prints the description of the adapters of a program. */
void hr_adapter_config_write(const hr_config *config, const hr_program *program, hr_writer *w);

#endif
