/* SPDX-License-Identifier: Apache-2.0 */
/* cli/text.c - prints model output and texts of files as valid UTF-8. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Returns the number of bytes of the UTF-8 character at `text` [bytes > 0]; 0: invalid. Refuses
 * overlong encodings, surrogates and code points above U+10FFFF by the second byte. */
static int64_t character(const unsigned char *text, int64_t bytes)
{
    const unsigned char first = text[0];
    const int64_t length = first < 0x80                    ? 1
                           : first >= 0xc2 && first < 0xe0 ? 2
                           : first >= 0xe0 && first < 0xf0 ? 3
                           : first >= 0xf0 && first < 0xf5 ? 4
                                                           : 0;
    if (length > bytes) return 0;
    for (int64_t i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    if ((first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] > 0x9f) ||
        (first == 0xf0 && text[1] < 0x90) || (first == 0xf4 && text[1] > 0x8f))
        return 0;
    return length;
}

/* Returns true for characters that control a terminal, or the direction of what follows: U+202A to
 * U+202E and U+2066 to U+2069, with which a line can show other words than it has. */
static bool is_control(const unsigned char *at, int64_t length)
{
    if (length == 3 && at[0] == 0xe2)
        return (at[1] == 0x80 && at[2] >= 0xaa && at[2] <= 0xae) ||
               (at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9);
    if (length == 1) return (*at < ' ' && *at != '\n' && *at != '\t') || *at == 127;
    return length == 2 && at[0] == 0xc2 && at[1] < 0xa0;
}

void hr_cli_put_text(const char *text, int64_t bytes)
{
    hr_cli_write_text(stdout, text, bytes);
}

void hr_cli_put_string(const char *text)
{
    hr_cli_write_text(stdout, text, (int64_t)strlen(text));
}

void hr_cli_write_text(FILE *to, const char *text, int64_t bytes)
{
    for (int64_t i = 0; i < bytes;) {
        const unsigned char *at = (const unsigned char *)text + i;
        const int64_t length = character(at, bytes - i);
        if (length == 0 || is_control(at, length)) fputc('?', to);
        else fwrite(at, 1, (size_t)length, to);
        i += length ? length : 1;
    }
}

void hr_cli_put_field(const char *text)
{
    if (!text[strcspn(text, ",\"\n\r")]) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text; text++) {
        if (*text == '"') putchar('"');
        putchar(*text);
    }
    putchar('"');
}

void hr_cli_put_json_text(const char *text, int64_t bytes)
{
    for (int64_t i = 0; i < bytes;) {
        const unsigned char *at = (const unsigned char *)text + i;
        const int64_t length = character(at, bytes - i);
        if (length == 0) fputs("\\ufffd", stdout);
        else if (*at == '"' || *at == '\\') printf("\\%c", *at);
        else if (*at < ' ' || *at == 127) printf("\\u%04x", *at);
        else fwrite(at, 1, (size_t)length, stdout);
        i += length ? length : 1;
    }
}

/* One of eight static buffers, in rotation. */
static char *next_text(void)
{
    enum { PLACES = 8 };
    static char texts[PLACES][HR_COUNT_BYTES];
    static int32_t next;
    next = (next + 1) % PLACES;
    return texts[next];
}

const char *hr_cli_count(int64_t count)
{
    return hr_count_print(count, next_text());
}

const char *hr_cli_size(int64_t bytes)
{
    return hr_size_print(bytes, next_text());
}

void hr_cli_progress_text(const char *work, int64_t bytes_done, int64_t bytes_total,
                          char text[HR_PROGRESS_BYTES])
{
    char done[HR_COUNT_BYTES], total[HR_COUNT_BYTES];
    if (bytes_total <= 0) snprintf(text, HR_PROGRESS_BYTES, "%s", work);
    else
        snprintf(text, HR_PROGRESS_BYTES, "%s: %s of %s", work, hr_size_print(bytes_done, done),
                 hr_size_print(bytes_total, total));
}

bool hr_cli_has_blocks(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) return strstr(value, "UTF-8") || strstr(value, "utf8");
    }
    return false;
}
