/* SPDX-License-Identifier: Apache-2.0 */
/* report/html.c - what all pages have in common. Text from files is escaped. */
#include "report/html.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "headroom/config.h"
#include "headroom/version.h"
#include "report/svg.h"

/* How every page begins: what may replace a page. */
static const char page_begin[] = "<!doctype html>\n<!-- headroom ";

/* ---- the file */

hr_status hr_html_check(const char *path, hr_error *err)
{
    return hr_file_check_kind(path, page_begin, "page", err);
}

static void flush(hr_html *page)
{
    if (page->status == HR_OK)
        page->status = hr_file_append(&page->out, page->text, page->used, page->err);
    page->used = 0;
}

void hr_html_put(hr_html *page, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int32_t room = HR_HTML_TEXT_BYTES - page->used;
    int length = vsnprintf(page->text + page->used, (size_t)room, format, arguments);
    if (length >= room) { /* the begin that did fit is not counted, and written again */
        flush(page);
        length = vsnprintf(page->text, HR_HTML_TEXT_BYTES, format, again);
    }
    page->used += (int32_t)hr_min(length, HR_HTML_TEXT_BYTES - 1);
    va_end(again);
    va_end(arguments);
}

hr_status hr_html_close(hr_html *page, const char *note)
{
    hr_html_put(page, "<p>headroom %s. %s</p>\n</main></html>\n", HR_VERSION, note);
    flush(page);
    return page->status == HR_OK ? hr_file_commit(&page->out, page->err) : page->status;
}

/* ---- text */

void hr_html_put_text(hr_html *page, const char *text)
{
    while (*text) {
        int32_t code;
        const int64_t plain = hr_svg_plain(text, &code);
        hr_html_put(page, "%.*s", (int)plain, text);
        if (code) hr_html_put(page, "&#%d;", code);
        text += plain + (code != 0);
    }
}

void hr_html_put_cell(hr_html *page, const char *text)
{
    hr_html_put(page, "<td>");
    hr_html_put_text(page, text);
    hr_html_put(page, "</td>");
}

void hr_html_put_bytes(hr_html *page, int64_t bytes)
{
    char count[HR_COUNT_BYTES], size[HR_COUNT_BYTES];
    hr_html_put(page, "<td class=n>%s</td><td class=n>%s</td>", hr_count_print(bytes, count),
                hr_size_print(bytes, size));
}

void hr_html_put_count(hr_html *page, int64_t count)
{
    char text[HR_COUNT_BYTES];
    hr_html_put(page, "<td class=n>%s</td>", count ? hr_count_print(count, text) : "-");
}

void hr_html_put_number(hr_html *page, int32_t decimals, double value)
{
    if (isnan(value)) hr_html_put(page, "<td class=n>-</td>");
    else hr_html_put(page, "<td class=n>%.*f</td>", (int)decimals, value);
}

void hr_html_put_fact(hr_html *page, const char *name, const char *text)
{
    hr_html_put(page, "<div><dt>%s</dt><dd>", name);
    hr_html_put_text(page, text);
    hr_html_put(page, "</dd></div>");
}

/* A table that scrolls by itself on a narrow screen, also with the keyboard. */
void hr_html_begin_table(hr_html *page, const char *title, const char *heads)
{
    hr_html_put(page,
                "<h2>%s</h2>\n<div class=wide tabindex=0 role=region "
                "aria-label=\"%s\"><table>\n",
                title, title);
    if (*heads) hr_html_put(page, "<tr>%s</tr>\n", heads);
}

void hr_html_end_table(hr_html *page)
{
    hr_html_put(page, "</table></div>\n");
}

void hr_html_put_bars(hr_html *page, double share, double second)
{
    hr_html_put(page, "<td class=bar>");
    if (!isnan(share)) hr_html_put(page, "<i style='width:%.1f%%'></i>", 100 * share);
    if (!isnan(second)) hr_html_put(page, "<i class=b style='width:%.1f%%'></i>", 100 * second);
    hr_html_put(page, "</td>");
}

/* ---- charts */

void hr_html_put_color(hr_html *page, int32_t n)
{
    hr_html_put(page, "hsl(%d,55%%,%d%%)", (n * 67 + 205) % 360, n % 2 ? 52 : 60);
}

/* --s is darker on light and lighter on dark. */
void hr_html_put_line_color(hr_html *page, int32_t n)
{
    static const int32_t hues[HR_HTML_LINE_COLORS] = { 210, 28, 150, 282, 340, 60 };
    hr_html_put(page, "hsl(%d,65%%,var(--s))", hues[n % HR_HTML_LINE_COLORS]);
}

double hr_html_x(double value, double least, double most)
{
    const double width = HR_HTML_WIDTH - HR_HTML_LEFT - HR_HTML_RIGHT;
    return HR_HTML_LEFT + width * (value - least) / (most - least);
}

double hr_html_y(double value, double least, double most, int32_t height)
{
    const double room = height - HR_HTML_TOP - HR_HTML_BOTTOM;
    return height - HR_HTML_BOTTOM - room * (value - least) / (most - least);
}

void hr_html_begin_chart(hr_html *page, char id, const char *title, const char *about,
                         int32_t height)
{
    hr_html_put(page,
                "<figure><div class=wide tabindex=0 role=region aria-label=\"%s\"><svg viewBox='0 "
                "0 %d %d' role=img aria-labelledby='%ct %cd'><title id=%ct>%s</title><desc "
                "id=%cd>",
                title, HR_HTML_WIDTH, height, id, id, id, title, id);
    hr_html_put_text(page, about);
    hr_html_put(page, ".</desc>\n");
}

void hr_html_begin_legend(hr_html *page)
{
    hr_html_put(page, "</svg></div><figcaption><ul class=legend>");
}

void hr_html_end_chart(hr_html *page)
{
    hr_html_put(page, "</ul></figcaption></figure>\n");
}

void hr_html_put_grid(hr_html *page, double y, const char *label)
{
    hr_html_put(page,
                "<path class=grid d='M%d %.1fH%d'/><text x='%d' y='%.1f' "
                "text-anchor=end>%s</text>\n",
                HR_HTML_LEFT, y, HR_HTML_WIDTH - HR_HTML_RIGHT, HR_HTML_LEFT - 6, y + 4, label);
}

/* ---- the head */

static const char style[] =
    ":root{color-scheme:light dark;--f:#1b1f24;--b:#fff;--m:#57606a;--l:#d0d7de;--k:#8c959f;"
    "--r:#b42318;--s:42%}\n"
    "@media(prefers-color-scheme:dark){:root{--f:#e6edf3;--b:#0d1117;--m:#9da7b1;--l:#30363d;"
    "--k:#6e7681;--r:#ff7b72;--s:66%}}\n"
    "body{font:16px/1.5 system-ui,sans-serif;color:var(--f);background:var(--b);margin:0 auto;"
    "max-width:64rem;padding:1rem}\n"
    "h1{font-size:1.6rem;margin:.5rem 0}h2{font-size:1.1rem;margin:2rem 0 .5rem}\n"
    ".no{color:var(--r)}.facts{display:flex;flex-wrap:wrap;gap:.5rem 2rem;margin:1rem "
    "0;padding:0}\n"
    ".facts div{min-width:8rem}.facts dt{color:var(--m);font-size:.85rem}.facts dd{margin:0}\n"
    "figure{margin:1.5rem 0}svg{width:100%;min-width:44rem;height:auto}svg "
    "text{fill:var(--f);font-size:12px}\n"
    ".grid{stroke:var(--l)}.base{fill:var(--k);background:var(--k)}path.limit{stroke:var(--r);"
    "stroke-width:1.5;stroke-dasharray:6 4}text.limit{fill:var(--r)}\n"
    ".mark{stroke:var(--f);stroke-dasharray:2 "
    "3}.line{fill:none;stroke-width:1.5;stroke-linejoin:round}"
    ".legend{display:flex;flex-wrap:wrap;gap:.2rem "
    "1rem;list-style:none;padding:0;font-size:.85rem}\n"
    ".legend i{display:inline-block;width:.8rem;height:.8rem;margin-right:.4rem}\n"
    ".wide{overflow-x:auto}.wide:focus{outline:2px solid "
    "var(--m)}table{border-collapse:collapse}\n"
    "th{color:var(--m);font-weight:600;font-size:.85rem}th,td{text-align:left;padding:.25rem "
    ".75rem .25rem 0;border-bottom:1px solid var(--l);vertical-align:top}\n"
    "td:last-child{min-width:12rem}.n{text-align:right;min-width:0!important;white-space:"
    "nowrap;font-variant-numeric:tabular-nums}"
    "pre{overflow-x:auto}\n"
    ".bar i,th i{display:block;height:.5rem;margin-top:.2rem;background:hsl(210,65%,var(--s))}"
    "th i{display:inline-block;width:.8rem;margin-right:.4rem}"
    "td.bar:last-child{min-width:18rem}.bar .b,th .b{background:var(--k)}"
    "@media(max-width:40rem){td.bar:last-child{min-width:9rem}}"
    "svg.key{width:1.75rem;min-width:0;margin-right:.4rem;vertical-align:middle}\n";

hr_status hr_html_open(hr_html *page, const char *path, const char *title, hr_error *err)
{
    page->err = err;
    page->used = 0;
    page->status = hr_file_begin_path(&page->out, path, err);
    if (page->status != HR_OK) return page->status;
    hr_html_put(page,
                "%s%s -->\n<html lang=en><meta charset=utf-8>\n<meta name=viewport "
                "content='width=device-width,initial-scale=1'>\n<title>headroom: ",
                page_begin, HR_VERSION);
    hr_html_put_text(page, title);
    hr_html_put(page, "</title>\n<style>\n%s</style>\n<main>\n", style);
    return HR_OK;
}
