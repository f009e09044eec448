/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as a corpus: text, lines or ids, compressed or not, as the first byte selects.
 * The documents are complete and independent of buffer sizes, or the corpus is refused with a
 * message of one line. */
#define XXH_STATIC_LINKING_ONLY
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "corpus/corpus.h"

enum { V = 1000, NAMES = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static const char *const names[NAMES] = {
    "a.txt",    "a.jsonl", "a.jsonl.gz",    "a.jsonl.zst",
    "a.txt.gz", "a.bin",   "a.bin ids=u16", "a.bin.gz ids=u32"
};

typedef struct {
    hr_status status;
    hr_error err;
    uint64_t hash;
    int64_t documents, bad_lines;
} summary;

static void check_piece(const hr_piece *piece, bool inside, bool is_ids)
{
    if (piece->begins && inside && !is_ids) __builtin_trap();
    if (!piece->begins && !inside) __builtin_trap();
    if (piece->ends && !piece->segment_ends) __builtin_trap();
    if (!piece->ids != !is_ids && piece->count) __builtin_trap();
    for (int64_t i = 0; piece->ids && i < piece->count; i++)
        if (piece->ids[i] >= V) __builtin_trap();
}

/* Reads all documents; the hash depends on their content, not on the pieces. */
static void summarize(const hr_documents *documents, summary *t)
{
    static XXH3_state_t all, one;
    hr_text_hash identity, seen;
    hr_piece piece = { 0 };
    int64_t files_bytes;
    bool inside = false, targets = true;
    XXH3_INITSTATE(&all);
    XXH3_INITSTATE(&one);
    XXH3_64bits_reset(&all);
    t->status = documents->identify(documents->context, NULL, &identity, &files_bytes, &t->err);
    if (t->status == HR_OK)
        t->status = documents->open(documents->context, "reading", NULL, &t->err);
    while (t->status == HR_OK) {
        t->status = documents->next(documents->context, &piece, &t->err);
        if (t->status != HR_OK || !piece.path) break;
        check_piece(&piece, inside, documents->is_ids);
        if (piece.begins) XXH3_64bits_reset(&one);
        if (piece.begins) targets = true;
        if (piece.count && piece.targets != targets) XXH3_64bits_update(&one, "turn", 4);
        if (piece.count) targets = piece.targets;
        const size_t unit = piece.ids ? sizeof *piece.ids : 1;
        const void *from = piece.ids ? (const void *)piece.ids : piece.bytes;
        XXH3_64bits_update(&one, from, (size_t)piece.count * unit);
        inside = !piece.ends;
        if (!piece.ends || piece.discard) continue;
        const uint64_t hash = XXH3_64bits_digest(&one);
        XXH3_64bits_update(&all, &hash, sizeof hash);
        t->documents++;
    }
    if (t->status == HR_OK) seen = documents->seen(documents->context, &t->bad_lines);
    documents->close(documents->context);
    if (t->status == HR_OK && !hr_text_hash_equal(seen, identity)) __builtin_trap();
    t->hash = documents->is_ids ? XXH3_64bits_digest(&one) : XXH3_64bits_digest(&all);
}

static summary read_with(const char *path, int64_t line_bytes, bool skips)
{
    summary t = { 0 };
    hr_corpus *corpus = NULL;
    const hr_corpus_desc desc = { .train = path,
                                  .valid = "",
                                  .text_field = "text",
                                  .prompt_field = "prompt",
                                  .completion_field = "completion",
                                  .skip_bad_lines = skips,
                                  .vocab_size = V,
                                  .document_end = 0,
                                  .line_bytes = line_bytes };
    const int64_t bytes = hr_corpus_bytes(&desc);
    void *memory = aligned_alloc(64, (size_t)bytes);
    t.status = hr_corpus_open(&corpus, memory, bytes, &desc, &t.err);
    if (t.status == HR_OK) summarize(&hr_corpus_texts(corpus)->train[0].documents, &t);
    hr_corpus_close(&corpus);
    free(memory);
    if (t.status != HR_OK && ((t.status != HR_CORRUPT && t.status != HR_USAGE) ||
                              t.err.status != t.status || strchr(t.err.message, '\n')))
        __builtin_trap();
    return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static char folder[] = P_tmpdir "/headroom-fuzz-XXXXXX", made;
    char path[128], file[128];
    if (!made && !mkdtemp(folder)) return -1;
    made = 1;
    if (!count) return 0;
    snprintf(path, sizeof path, "%s/%s", folder, names[bytes[0] % NAMES]);
    snprintf(file, sizeof file, "%.*s", (int)strcspn(path, " "), path);
    FILE *out = fopen(file, "wb");
    if (!out || fwrite(bytes + 1, 1, count - 1, out) != count - 1 || fclose(out)) return -1;
    const summary wide = read_with(path, 0, false), narrow = read_with(path, 64, false);
    const summary skipped = read_with(path, 0, true);
    unlink(file);
    const bool of_order = strstr(narrow.err.message, "is longer than the buffer") != NULL;
    if (narrow.status != wide.status && !of_order) __builtin_trap();
    if (wide.status == HR_OK && narrow.status == HR_OK &&
        (narrow.hash != wide.hash || narrow.documents != wide.documents))
        __builtin_trap();
    if (wide.status == HR_OK && (skipped.status != HR_OK || skipped.hash != wide.hash ||
                                 skipped.bad_lines || wide.bad_lines))
        __builtin_trap();
    return 0;
}
