/* SPDX-License-Identifier: Apache-2.0 */
/* cli/convert.c - headroom convert: converts weights from one directory into another. */
#include "headroom/convert.h"

#include <stdio.h>

#include "cli.h"

static int convert(const hr_cli_arguments *arguments, const char *adapter, const char *destination)
{
    const char *shard = arguments->values[HR_OPTION_SHARD_BYTES];
    hr_convert_request request = { .size = sizeof request,
                                   .source = arguments->operands[0],
                                   .destination = destination,
                                   .prefix = arguments->values[HR_OPTION_PREFIX],
                                   .dtype = arguments->values[HR_OPTION_DTYPE],
                                   .adapter = adapter,
                                   .interrupts = hr_cli_catch_signals(NULL) };
    hr_convert_report report;
    hr_error err;
    char bytes[64];
    if (shard && hr_bytes_parse(shard, &request.shard_bytes, &err) != HR_OK)
        return hr_cli_fail(&err);
    if (shard && request.shard_bytes == 0) {
        (void)hr_fail(&err, HR_USAGE, "--shard-bytes %.40s is zero; give a size", shard);
        return hr_cli_fail(&err);
    }
    if (hr_convert(&request, &report, &err) != HR_OK) {
        const int code = hr_cli_fail(&err);
        return code == HR_INTERRUPTED ? hr_cli_signal_code() : code;
    }
    printf("%s: %d tensor%s in %d file%s, %s; dtype changed in %d\n", request.destination,
           report.tensors, report.tensors == 1 ? "" : "s", report.files,
           report.files == 1 ? "" : "s", hr_bytes_print(report.bytes, bytes), report.changed);
    return HR_OK;
}

int hr_cli_convert(const hr_cli_arguments *arguments)
{
    return convert(arguments, NULL, arguments->operands[1]);
}

int hr_cli_adapter_merge(const hr_cli_arguments *arguments)
{
    return convert(arguments, arguments->operands[1], arguments->operands[2]);
}
