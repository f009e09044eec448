/* SPDX-License-Identifier: Apache-2.0 */
/* audit/known_models.c - shapes of published models, from their config.json files, and the numbers
 * of parameters that their repositories show. A test compares the two. */
#include <ctype.h>
#include <string.h>

#include "audit/models.h"
#include "base/words.h"

#define QWEN "qwen2"
#define SMALL_VOCAB "vocab_size=151936"

/* Family, sizes and parameters that several models have. */
#define LLAMA_8B \
    "llama", "d_model=4096 n_layers=32 n_heads=32 n_kv_heads=8 d_ff=14336 vocab_size=128256", \
        8030261248
#define LLAMA_70B \
    "llama", "d_model=8192 n_layers=80 n_heads=64 n_kv_heads=8 d_ff=28672 vocab_size=128256", \
        70553706496
#define QWEN_7B \
    "qwen2", "d_model=3584 n_layers=28 n_heads=28 n_kv_heads=4 d_ff=18944 vocab_size=152064", \
        7615616512
#define QWEN_14B \
    "qwen2", "d_model=5120 n_layers=48 n_heads=40 n_kv_heads=8 d_ff=13824 vocab_size=152064", \
        14770033664
#define QWEN_32B \
    "qwen2", "d_model=5120 n_layers=64 n_heads=40 n_kv_heads=8 d_ff=27648 vocab_size=152064", \
        32763876352
#define MISTRAL_7B \
    "mistral", "d_model=4096 n_layers=32 n_heads=32 n_kv_heads=8 d_ff=14336 vocab_size=32000", \
        7241732096
#define QWEN_HALF \
    "qwen2", \
        "d_model=896 n_layers=24 n_heads=14 n_kv_heads=2 d_ff=4864 vocab_size=151936 " \
        "tie_embeddings=true", \
        494032768
#define QWEN_1_5B \
    "qwen2", \
        "d_model=1536 n_layers=28 n_heads=12 n_kv_heads=2 d_ff=8960 vocab_size=151936 " \
        "tie_embeddings=true", \
        1543714304
#define QWEN_72B \
    "qwen2", "d_model=8192 n_layers=80 n_heads=64 n_kv_heads=8 d_ff=29568 vocab_size=152064", \
        72706203648
#define QWEN3_8B \
    "qwen3", \
        "d_model=4096 n_layers=36 n_heads=32 n_kv_heads=8 head_dim=128 d_ff=12288 " \
        "vocab_size=151936", \
        8190735360

static const hr_known_model models[] = {
    { "llama-2-7b", "llama", "d_model=4096 n_layers=32 n_heads=32 d_ff=11008 vocab_size=32000",
      6738415616, "fp16", "meta-llama/Llama-2-7b-hf" },
    { "llama-2-13b", "llama", "d_model=5120 n_layers=40 n_heads=40 d_ff=13824 vocab_size=32000",
      13015864320, "fp16", "meta-llama/Llama-2-13b-hf" },
    { "llama-2-70b", "llama",
      "d_model=8192 n_layers=80 n_heads=64 n_kv_heads=8 d_ff=28672 vocab_size=32000", 68976648192,
      "fp16", "meta-llama/Llama-2-70b-hf" },
    { "llama-3-8b", LLAMA_8B, "bf16", "meta-llama/Meta-Llama-3-8B" },
    { "llama-3-70b", LLAMA_70B, "bf16", "meta-llama/Meta-Llama-3-70B" },
    { "llama-3.1-8b", LLAMA_8B, "bf16", "meta-llama/Llama-3.1-8B" },
    { "llama-3.1-70b", LLAMA_70B, "bf16", "meta-llama/Llama-3.1-70B" },
    { "llama-3.1-405b", "llama",
      "d_model=16384 n_layers=126 n_heads=128 n_kv_heads=8 d_ff=53248 vocab_size=128256",
      405853388800, "bf16", "meta-llama/Llama-3.1-405B" },
    { "llama-3.3-70b", LLAMA_70B, "bf16", "meta-llama/Llama-3.3-70B-Instruct" },
    { "llama-3.2-1b", "llama",
      "d_model=2048 n_layers=16 n_heads=32 n_kv_heads=8 head_dim=64 d_ff=8192 vocab_size=128256 "
      "tie_embeddings=true",
      1235814400, "bf16", "meta-llama/Llama-3.2-1B" },
    { "llama-3.2-3b", "llama",
      "d_model=3072 n_layers=28 n_heads=24 n_kv_heads=8 head_dim=128 d_ff=8192 vocab_size=128256 "
      "tie_embeddings=true",
      3212749824, "bf16", "meta-llama/Llama-3.2-3B" },
    { "codellama-7b", "llama", "d_model=4096 n_layers=32 n_heads=32 d_ff=11008 vocab_size=32016",
      6738546688, "bf16", "codellama/CodeLlama-7b-hf" },
    { "codellama-13b", "llama", "d_model=5120 n_layers=40 n_heads=40 d_ff=13824 vocab_size=32016",
      13016028160, "bf16", "codellama/CodeLlama-13b-hf" },
    { "codellama-34b", "llama",
      "d_model=8192 n_layers=48 n_heads=64 n_kv_heads=8 d_ff=22016 vocab_size=32000", 33743970304,
      "bf16", "codellama/CodeLlama-34b-hf" },
    { "deepseek-1.3b", "llama", "d_model=2048 n_layers=24 n_heads=16 d_ff=5504 vocab_size=32256",
      1346471936, "bf16", "deepseek-ai/deepseek-coder-1.3b-base" },
    { "deepseek-6.7b", "llama", "d_model=4096 n_layers=32 n_heads=32 d_ff=11008 vocab_size=32256",
      6740512768, "bf16", "deepseek-ai/deepseek-coder-6.7b-base" },
    { "tinyllama-1.1b", "llama",
      "d_model=2048 n_layers=22 n_heads=32 n_kv_heads=4 d_ff=5632 vocab_size=32000", 1100048384,
      "fp32", "TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T" },
    { "smollm2-135m", "llama",
      "d_model=576 n_layers=30 n_heads=9 n_kv_heads=3 d_ff=1536 vocab_size=49152 "
      "tie_embeddings=true",
      134515008, "bf16", "HuggingFaceTB/SmolLM2-135M" },
    { "smollm2-360m", "llama",
      "d_model=960 n_layers=32 n_heads=15 n_kv_heads=5 d_ff=2560 vocab_size=49152 "
      "tie_embeddings=true",
      361821120, "bf16", "HuggingFaceTB/SmolLM2-360M" },
    { "smollm2-1.7b", "llama",
      "d_model=2048 n_layers=24 n_heads=32 d_ff=8192 vocab_size=49152 tie_embeddings=true",
      1711376384, "bf16", "HuggingFaceTB/SmolLM2-1.7B" },
    { "yi-6b", "llama",
      "d_model=4096 n_layers=32 n_heads=32 n_kv_heads=4 d_ff=11008 vocab_size=64000", 6061035520,
      "bf16", "01-ai/Yi-6B" },
    { "yi-34b", "llama",
      "d_model=7168 n_layers=60 n_heads=56 n_kv_heads=8 d_ff=20480 vocab_size=64000", 34388917248,
      "bf16", "01-ai/Yi-34B" },
    { "deepseek-r1-distill-llama-8b", LLAMA_8B, "bf16",
      "deepseek-ai/DeepSeek-R1-Distill-Llama-8B" },
    { "deepseek-r1-distill-llama-70b", LLAMA_70B, "bf16",
      "deepseek-ai/DeepSeek-R1-Distill-Llama-70B" },
    { "deepseek-r1-distill-qwen-1.5b", QWEN,
      "d_model=1536 n_layers=28 n_heads=12 n_kv_heads=2 d_ff=8960 " SMALL_VOCAB, 1777088000, "bf16",
      "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B" },
    { "deepseek-r1-distill-qwen-7b", QWEN_7B, "bf16", "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B" },
    { "deepseek-r1-distill-qwen-14b", QWEN_14B, "bf16",
      "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B" },
    { "deepseek-r1-distill-qwen-32b", QWEN_32B, "bf16",
      "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B" },
    { "mistral-7b", MISTRAL_7B, "bf16", "mistralai/Mistral-7B-v0.1" },
    { "mistral-7b-v0.1", MISTRAL_7B, "bf16", "mistralai/Mistral-7B-v0.1" },
    { "mistral-7b-v0.2", MISTRAL_7B, "bf16", "mistralai/Mistral-7B-Instruct-v0.2" },
    { "mistral-7b-v0.3", "mistral",
      "d_model=4096 n_layers=32 n_heads=32 n_kv_heads=8 d_ff=14336 vocab_size=32768", 7248023552,
      "bf16", "mistralai/Mistral-7B-v0.3" },
    { "zephyr-7b", MISTRAL_7B, "bf16", "alignment-handbook/zephyr-7b-sft-full" },
    { "mistral-nemo", "mistral",
      "d_model=5120 n_layers=40 n_heads=32 n_kv_heads=8 head_dim=128 d_ff=14336 "
      "vocab_size=131072",
      12247782400, "bf16", "mistralai/Mistral-Nemo-Base-2407" },
    { "ministral-8b", "mistral",
      "d_model=4096 n_layers=36 n_heads=32 n_kv_heads=8 head_dim=128 d_ff=12288 vocab_size=131072",
      8019808256, "bf16", "mistralai/Ministral-8B-Instruct-2410" },
    { "mistral-small-24b", "mistral",
      "d_model=5120 n_layers=40 n_heads=32 n_kv_heads=8 head_dim=128 d_ff=32768 vocab_size=131072",
      23572403200, "bf16", "mistralai/Mistral-Small-24B-Base-2501" },
    { "qwen2-0.5b", QWEN_HALF, "bf16", "Qwen/Qwen2-0.5B" },
    { "qwen2-1.5b", QWEN_1_5B, "bf16", "Qwen/Qwen2-1.5B" },
    { "qwen2-7b", QWEN_7B, "bf16", "Qwen/Qwen2-7B" },
    { "qwen2-72b", QWEN_72B, "bf16", "Qwen/Qwen2-72B" },
    { "qwen2.5-0.5b", QWEN_HALF, "bf16", "Qwen/Qwen2.5-0.5B" },
    { "qwen2.5-1.5b", QWEN_1_5B, "bf16", "Qwen/Qwen2.5-1.5B" },
    { "qwen2.5-3b", QWEN,
      "d_model=2048 n_layers=36 n_heads=16 n_kv_heads=2 d_ff=11008 " SMALL_VOCAB
      " tie_embeddings=true",
      3085938688, "bf16", "Qwen/Qwen2.5-3B" },
    { "qwen2.5-7b", QWEN_7B, "bf16", "Qwen/Qwen2.5-7B" },
    { "qwen2.5-14b", QWEN_14B, "bf16", "Qwen/Qwen2.5-14B" },
    { "qwen2.5-32b", QWEN_32B, "bf16", "Qwen/Qwen2.5-32B" },
    { "qwen2.5-72b", QWEN_72B, "bf16", "Qwen/Qwen2.5-72B" },
    { "qwen3-0.6b", "qwen3",
      "d_model=1024 n_layers=28 n_heads=16 n_kv_heads=8 head_dim=128 d_ff=3072 " SMALL_VOCAB
      " tie_embeddings=true",
      596049920, "bf16", "Qwen/Qwen3-0.6B" },
    { "qwen3-1.7b", "qwen3",
      "d_model=2048 n_layers=28 n_heads=16 n_kv_heads=8 head_dim=128 d_ff=6144 " SMALL_VOCAB
      " tie_embeddings=true",
      1720574976, "bf16", "Qwen/Qwen3-1.7B" },
    { "qwen3-4b", "qwen3",
      "d_model=2560 n_layers=36 n_heads=32 n_kv_heads=8 head_dim=128 d_ff=9728 " SMALL_VOCAB
      " tie_embeddings=true",
      4022468096, "bf16", "Qwen/Qwen3-4B" },
    { "qwen3-8b", QWEN3_8B, "bf16", "Qwen/Qwen3-8B" },
    { "qwen3-14b", "qwen3",
      "d_model=5120 n_layers=40 n_heads=40 n_kv_heads=8 head_dim=128 d_ff=17408 " SMALL_VOCAB,
      14768307200, "bf16", "Qwen/Qwen3-14B" },
    { "qwen3-32b", "qwen3",
      "d_model=5120 n_layers=64 n_heads=64 n_kv_heads=8 head_dim=128 d_ff=25600 " SMALL_VOCAB,
      32762123264, "bf16", "Qwen/Qwen3-32B" },
    { "deepseek-r1-0528-qwen3-8b", QWEN3_8B, "bf16", "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B" },
    { "pythia-70m", "gpt_neox", "d_model=512 n_layers=6 n_heads=8 d_ff=2048 vocab_size=50304",
      70426624, "fp16", "EleutherAI/pythia-70m" },
    { "pythia-160m", "gpt_neox", "d_model=768 n_layers=12 n_heads=12 d_ff=3072 vocab_size=50304",
      162322944, "fp16", "EleutherAI/pythia-160m" },
    { "pythia-410m", "gpt_neox", "d_model=1024 n_layers=24 n_heads=16 d_ff=4096 vocab_size=50304",
      405334016, "fp16", "EleutherAI/pythia-410m" },
    { "pythia-1b", "gpt_neox", "d_model=2048 n_layers=16 n_heads=8 d_ff=8192 vocab_size=50304",
      1011781632, "fp16", "EleutherAI/pythia-1b" },
    { "pythia-1.4b", "gpt_neox", "d_model=2048 n_layers=24 n_heads=16 d_ff=8192 vocab_size=50304",
      1414647808, "fp16", "EleutherAI/pythia-1.4b" },
    { "pythia-2.8b", "gpt_neox", "d_model=2560 n_layers=32 n_heads=32 d_ff=10240 vocab_size=50304",
      2775208960, "fp16", "EleutherAI/pythia-2.8b" },
    { "pythia-6.9b", "gpt_neox", "d_model=4096 n_layers=32 n_heads=32 d_ff=16384 vocab_size=50432",
      6857302016, "fp16", "EleutherAI/pythia-6.9b" },
    { "pythia-12b", "gpt_neox", "d_model=5120 n_layers=36 n_heads=40 d_ff=20480 vocab_size=50688",
      11846072320, "fp16", "EleutherAI/pythia-12b" },
    { "gpt2", "gpt2",
      "d_model=768 n_layers=12 n_heads=12 d_ff=3072 vocab_size=50257 positions=1024", 124439808,
      "fp32", "openai-community/gpt2" },
    { "gpt2-medium", "gpt2",
      "d_model=1024 n_layers=24 n_heads=16 d_ff=4096 vocab_size=50257 positions=1024", 354823168,
      "fp32", "openai-community/gpt2-medium" },
    { "gpt2-large", "gpt2",
      "d_model=1280 n_layers=36 n_heads=20 d_ff=5120 vocab_size=50257 positions=1024", 774030080,
      "fp32", "openai-community/gpt2-large" },
    { "gpt2-xl", "gpt2",
      "d_model=1600 n_layers=48 n_heads=25 d_ff=6400 vocab_size=50257 positions=1024", 1557611200,
      "fp32", "openai-community/gpt2-xl" },
    { "distilgpt2", "gpt2",
      "d_model=768 n_layers=6 n_heads=12 d_ff=3072 vocab_size=50257 positions=1024", 81912576,
      "fp32", "distilbert/distilgpt2" },
    { "opt-125m", "opt",
      "d_model=768 n_layers=12 n_heads=12 d_ff=3072 vocab_size=50272 positions=2048", 125239296,
      "fp16", "facebook/opt-125m" },
    { "opt-1.3b", "opt",
      "d_model=2048 n_layers=24 n_heads=32 d_ff=8192 vocab_size=50272 positions=2048", 1315758080,
      "fp16", "facebook/opt-1.3b" },
    { "opt-2.7b", "opt",
      "d_model=2560 n_layers=32 n_heads=32 d_ff=10240 vocab_size=50272 positions=2048", 2651596800,
      "fp16", "facebook/opt-2.7b" },
    { "opt-6.7b", "opt",
      "d_model=4096 n_layers=32 n_heads=32 d_ff=16384 vocab_size=50272 positions=2048", 6658473984,
      "fp16", "facebook/opt-6.7b" },
};
enum { MODELS = sizeof models / sizeof *models };

const hr_known_model *hr_known_model_at(int32_t index)
{
    return index >= 0 && index < MODELS ? &models[index] : NULL;
}

enum { NAME_BYTES = 96 };

/* Removes a part of the name, with what follows it up to the next dash. */
static void drop(char *name, const char *part)
{
    char *at = strstr(name, part);
    if (!at) return;
    const char *rest = at + strlen(part);
    if (*rest && *rest != '-' && *rest != '_') return;
    memmove(at, rest, strlen(rest) + 1);
}

/* The last part of an id in lower case, without words that do not change the shape. */
static void shape_name(const char *id, char name[NAME_BYTES])
{
    static const char words[] =
        "-unsloth-bnb-4bit -bnb-4bit -bnb-8bit -instruct -chat -hf -base -4bit -8bit "
        "-bf16 -sft-full -sft-qlora -fp16 -beta -alpha -mlx -coder -math -deduped "
        "-2407 -2410 -2501 -2507 -thinking -v1.0 -12b";
    const char *last = strrchr(id, '/');
    int32_t n = 0;
    for (const char *at = last ? last + 1 : id; *at && n + 1 < NAME_BYTES; at++)
        name[n++] = (char)tolower((unsigned char)*at);
    name[n] = 0;
    if (!strncmp(name, "meta-", 5)) memmove(name, name + 5, (size_t)n - 4);
    if (!strncmp(name, "tinyllama", 9)) strcpy(name, "tinyllama-1.1b");
    if (!strncmp(name, "smollm-", 7) && n + 1 < NAME_BYTES) {
        memmove(name + 7, name + 6, strlen(name + 6) + 1);
        name[6] = '2';
    }
    for (hr_words w = { words }; hr_words_next(&w);)
        /* "-12b" is part of pythia-12b, but only an addition to mistral-nemo. */
        if (strcmp(w.text, "-12b") != 0 || !strncmp(name, "mistral-nemo", 12)) drop(name, w.text);
}

const hr_known_model *hr_known_model_find(const char *id)
{
    char name[NAME_BYTES];
    shape_name(id, name);
    for (int32_t i = 0; i < MODELS; i++)
        if (!strcmp(models[i].name, name)) return &models[i];
    return NULL;
}

/* Architectures that are neither here nor in headroom, by what their names begin with or have. */
static const struct {
    const char *parts, *title;
    bool anywhere;
} architectures[] = {
    { "x7b x22b moe", "a mixture of experts", true },
    { "deepseek-v gpt-oss llama-4 llama4", "a mixture of experts", false },
    { "-vl -vision _vision", "a model of images", true },
    { "llava", "a model of images", false },
    { "qwen3.5", "of the Qwen 3.5 architecture", false },
    { "qwen3-next", "of the Qwen3-Next architecture", false },
    { "gemma codegemma", "of the Gemma architecture", false },
    { "phi", "of the Phi architecture", false },
    { "olmo", "of the OLMo architecture", false },
    { "stablelm", "of the StableLM architecture", false },
    { "falcon", "of the Falcon architecture", false },
    { "smollm3", "of the SmolLM3 architecture", false },
    { "bloom", "of the BLOOM architecture", false },
    { "gpt-j", "of the GPT-J architecture", false },
    { "starcoder", "of the StarCoder architecture", false },
    { "glm chatglm", "of the GLM architecture", false },
    { "internlm", "of the InternLM architecture", false },
    { "mamba", "of the Mamba architecture", false },
    { "granite", "of the Granite architecture", false },
    { "c4ai-command", "of the Cohere architecture", false },
};

/* "-a3b": the parameters that a token uses, which only mixtures of experts state. */
static bool has_active_part(const char *name)
{
    for (const char *at = strstr(name, "-a"); at; at = strstr(at + 1, "-a")) {
        const size_t digits = strspn(at + 2, "0123456789.");
        const char *end = at + 2 + digits;
        if (digits && *end == 'b' && (!end[1] || end[1] == '-')) return true;
    }
    return false;
}

const char *hr_unknown_architecture(const char *id)
{
    char name[NAME_BYTES];
    shape_name(id, name);
    if (has_active_part(name)) return "a mixture of experts";
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
        for (hr_words w = { architectures[i].parts }; hr_words_next(&w);) {
            const char *at = strstr(name, w.text);
            if (at && (architectures[i].anywhere || at == name)) return architectures[i].title;
        }
    return NULL;
}

const hr_known_model *hr_known_model_nearest(const char *id)
{
    char name[NAME_BYTES];
    shape_name(id, name);
    return &models[hr_audit_nearest(name, models, sizeof *models, MODELS)];
}
