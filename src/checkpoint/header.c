/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint/header.c - parses the header of one safetensors file: dtypes, tensors and their
 * sizes. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "checkpoint/opening.h"

static const hr_stored_dtype dtypes[] = {
    { "F32", 32, HR_STORED_F32 },      { "F16", 16, HR_STORED_F16 },
    { "BF16", 16, HR_STORED_BF16 },    { "F64", 64, HR_STORED_OTHER },
    { "I64", 64, HR_STORED_OTHER },    { "U64", 64, HR_STORED_OTHER },
    { "C64", 64, HR_STORED_OTHER },    { "I32", 32, HR_STORED_OTHER },
    { "U32", 32, HR_STORED_OTHER },    { "I16", 16, HR_STORED_OTHER },
    { "U16", 16, HR_STORED_OTHER },    { "I8", 8, HR_STORED_OTHER },
    { "U8", 8, HR_STORED_U8 },         { "BOOL", 8, HR_STORED_OTHER },
    { "F8_E5M2", 8, HR_STORED_OTHER }, { "F8_E4M3", 8, HR_STORED_E4M3 },
    { "F8_E8M0", 8, HR_STORED_OTHER }, { "F8_E4M3FNUZ", 8, HR_STORED_OTHER },
    { "F6_E2M3", 6, HR_STORED_OTHER }, { "F6_E3M2", 6, HR_STORED_OTHER },
    { "F4", 4, HR_STORED_OTHER },      { "F8_E5M2FNUZ", 8, HR_STORED_OTHER },
};

const hr_stored_dtype *hr_stored_dtype_find(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(dtypes[i].name, name)) return &dtypes[i];
    return NULL;
}

static hr_status wrong_header(const hr_opening *o, const hr_json *json)
{
    return hr_opening_not_json(o, json, "header", HR_STORED_LENGTH_BYTES);
}

static hr_status wrong_tensor(const hr_opening *o, const hr_stored_tensor *tensor, const char *what)
{
    return hr_fail(o->err, HR_CORRUPT, "%s: tensor %.*s: %s", hr_path_shown(o->place),
                   HR_STORED_NAME_SHOWN, tensor->name, what);
}

static hr_status read_dtype(const hr_opening *o, hr_json *json, hr_stored_tensor *tensor)
{
    char what[96];
    if (hr_json_next(json) != HR_JSON_STRING) return wrong_header(o, json);
    tensor->dtype = hr_stored_dtype_find(json->value);
    if (tensor->dtype) return HR_OK;
    if (!hr_opening_is_plain(json->value))
        return wrong_tensor(o, tensor, "its dtype is not a string");
    snprintf(what, sizeof what, "unknown dtype \"%.40s\"", json->value);
    return wrong_tensor(o, tensor, what);
}

/* Reads at most `most` non-negative integers. */
static hr_status read_numbers(const hr_opening *o, hr_json *json, hr_stored_tensor *tensor,
                              const char *key, int64_t *numbers, int32_t most, int32_t *count)
{
    char what[96];
    *count = 0;
    if (hr_json_next(json) != HR_JSON_ARRAY) return wrong_header(o, json);
    for (hr_json_kind kind; (kind = hr_json_next(json)) != HR_JSON_CLOSE; (*count)++) {
        if (kind == HR_JSON_WRONG) return wrong_header(o, json);
        if (*count == most) {
            snprintf(what, sizeof what, "its %s has more than %d numbers", key, most);
            return wrong_tensor(o, tensor, what);
        }
        if (kind == HR_JSON_NUMBER && hr_json_integer(json, &numbers[*count]) &&
            numbers[*count] >= 0)
            continue;
        snprintf(what, sizeof what, "its %s needs non-negative integers", key);
        return wrong_tensor(o, tensor, what);
    }
    return HR_OK;
}

static hr_status check_size(const hr_opening *o, const hr_stored_tensor *tensor, int64_t begin,
                            int64_t end)
{
    char shape[128], what[320];
    int64_t bits = tensor->dtype->bits;
    hr_stored_shape(tensor, shape, sizeof shape);
    bool fits = true;
    /* a dimension of zero makes the tensor empty, even if the product would overflow */
    for (int32_t i = 0; i < tensor->rank; i++)
        if (tensor->dims[i] == 0) bits = 0;
    for (int32_t i = 0; i < tensor->rank && fits; i++)
        fits = hr_checked_mul(bits, tensor->dims[i], &bits);
    if (!fits || bits % 8) {
        snprintf(what, sizeof what, "its shape %s of %s %s", shape, tensor->dtype->name,
                 fits ? "is not a whole number of bytes" : "is too large");
        return wrong_tensor(o, tensor, what);
    }
    if (begin <= end && end - begin == bits / 8) return HR_OK;
    snprintf(what, sizeof what,
             "its shape %s of %s needs %lld bytes, its data_offsets are [%lld, "
             "%lld]",
             shape, tensor->dtype->name, (long long)(bits / 8), (long long)begin, (long long)end);
    return wrong_tensor(o, tensor, what);
}

static hr_status read_tensor(hr_opening *o, hr_json *json, hr_stored_tensor *tensor)
{
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4, ALL = 7 };
    int64_t offsets[2] = { 0 };
    int32_t seen = 0, count = 0;
    char what[96];
    hr_json_kind kind = hr_json_next(json);
    if (kind != HR_JSON_OBJECT) return wrong_header(o, json);
    while ((kind = hr_json_next(json)) == HR_JSON_KEY) {
        hr_status status;
        const int32_t key = hr_json_is(json, "dtype")          ? DTYPE
                            : hr_json_is(json, "shape")        ? SHAPE
                            : hr_json_is(json, "data_offsets") ? OFFSETS
                                                               : 0;
        if (!key || (seen & key)) {
            snprintf(what, sizeof what, "the key \"%.40s\" %s",
                     hr_opening_is_plain(json->value) ? json->value : "?",
                     key ? "occurs twice" : "is not part of the format");
            return wrong_tensor(o, tensor, what);
        }
        seen |= key;
        if (key == DTYPE) status = read_dtype(o, json, tensor);
        else if (key == SHAPE)
            status = read_numbers(o, json, tensor, "shape", tensor->dims, HR_STORED_RANK_MAX,
                                  &tensor->rank);
        else status = read_numbers(o, json, tensor, "data_offsets", offsets, 2, &count);
        if (status != HR_OK) return status;
    }
    if (kind != HR_JSON_CLOSE) return wrong_header(o, json);
    if (seen != ALL || count != 2)
        return wrong_tensor(o, tensor, "dtype, shape or data_offsets is missing");
    tensor->offset = offsets[0];
    tensor->bytes = offsets[1] - offsets[0];
    return check_size(o, tensor, offsets[0], offsets[1]);
}

/* ---- a header */

static const char metadata_name[] = "__metadata__"; /* the only key that is not a tensor */

static hr_status read_metadata(const hr_opening *o, hr_json *json)
{
    hr_json_kind kind = hr_json_next(json);
    if (kind != HR_JSON_OBJECT) return wrong_header(o, json);
    while ((kind = hr_json_next(json)) == HR_JSON_KEY)
        if (hr_json_next(json) != HR_JSON_STRING) return wrong_header(o, json);
    return kind == HR_JSON_CLOSE ? HR_OK : wrong_header(o, json);
}

hr_status hr_opening_read_header(hr_opening *o, int32_t file)
{
    hr_stored *stored = o->stored;
    hr_json json = hr_json_over(o->texts[file], o->text_bytes[file]);
    hr_json_kind kind;
    bool described = false;
    if (hr_json_next(&json) != HR_JSON_OBJECT) return wrong_header(o, &json);
    while ((kind = hr_json_next(&json)) == HR_JSON_KEY) {
        hr_status status;
        if (hr_json_is(&json, metadata_name)) {
            if (described)
                return hr_fail(o->err, HR_CORRUPT, "%s: has \"%s\" twice", hr_path_shown(o->place),
                               metadata_name);
            described = true;
            status = read_metadata(o, &json);
            if (status != HR_OK) return status;
            continue;
        }
        hr_stored_tensor *tensor = hr_opening_add_row(o->region, (void **)&stored->tensors,
                                                      stored->tensor_count, sizeof *tensor);
        if (!tensor) return hr_opening_no_room(o);
        tensor->name = json.value;
        tensor->file = file;
        if (!hr_opening_is_plain(tensor->name))
            return hr_fail(o->err, HR_CORRUPT,
                           "%s: header, byte %lld: a control character in a tensor's name",
                           hr_path_shown(o->place), (long long)(json.at + HR_STORED_LENGTH_BYTES));
        stored->tensor_count++;
        status = read_tensor(o, &json, tensor);
        if (status != HR_OK) return status;
    }
    if (kind != HR_JSON_CLOSE || hr_json_next(&json) != HR_JSON_END) return wrong_header(o, &json);
    return HR_OK;
}

static hr_status check_length(const hr_opening *o, const hr_stored_file *file,
                              const uint8_t length[HR_STORED_LENGTH_BYTES], int64_t *text_bytes)
{
    uint64_t bytes = 0;
    for (int32_t i = HR_STORED_LENGTH_BYTES - 1; i >= 0; i--) bytes = bytes << 8 | length[i];
    if (bytes > HR_STORED_HEADER_BYTES_MAX)
        return hr_fail(o->err, HR_CORRUPT, "%s: its header has %llu bytes, the limit is %d",
                       hr_path_shown(o->place), (unsigned long long)bytes,
                       HR_STORED_HEADER_BYTES_MAX);
    if ((int64_t)bytes > file->bytes - HR_STORED_LENGTH_BYTES)
        return hr_fail(o->err, HR_CORRUPT,
                       "%s: its header ends at byte %lld, the file at byte %lld: the file is "
                       "truncated",
                       hr_path_shown(o->place), (long long)bytes + HR_STORED_LENGTH_BYTES,
                       (long long)file->bytes);
    *text_bytes = (int64_t)bytes;
    return HR_OK;
}

hr_status hr_opening_load_header(hr_opening *o, int32_t index)
{
    hr_stored_file *file = &o->stored->files[index];
    uint8_t length[HR_STORED_LENGTH_BYTES];
    if (file->bytes < HR_STORED_LENGTH_BYTES)
        return hr_fail(o->err, HR_CORRUPT, "%s: has %lld bytes, a safetensors file has at least %d",
                       hr_path_shown(o->place), (long long)file->bytes, HR_STORED_LENGTH_BYTES);
    hr_status status = hr_file_read(file->file, o->place, 0, length, HR_STORED_LENGTH_BYTES,
                                    o->err);
    if (status == HR_OK) status = check_length(o, file, length, &o->text_bytes[index]);
    if (status != HR_OK) return status;
    o->texts[index] = hr_region_take(o->region, o->text_bytes[index] + 1, 1);
    if (!o->texts[index]) return hr_opening_no_room(o);
    file->data_offset = HR_STORED_LENGTH_BYTES + o->text_bytes[index];
    return hr_file_read(file->file, o->place, HR_STORED_LENGTH_BYTES, o->texts[index],
                        o->text_bytes[index], o->err);
}

const char *hr_stored_shape(const hr_stored_tensor *tensor, char *text, int64_t bytes)
{
    int64_t used = snprintf(text, (size_t)bytes, "[");
    for (int32_t i = 0; i < tensor->rank && used < bytes; i++)
        used += snprintf(text + used, (size_t)(bytes - used), "%s%lld", i ? ", " : "",
                         (long long)tensor->dims[i]);
    if (used < bytes) snprintf(text + used, (size_t)(bytes - used), "]");
    return text;
}
