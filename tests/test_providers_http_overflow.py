# ruff: noqa: E501 - the texts are as servers send them
"""Whether an error's words say that the prompt is too long: real texts of servers and vendors."""

from __future__ import annotations

import pytest

from eyechart.providers.http.overflow import is_too_long

TOO_LONG = """
This model's maximum context length is 4097 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion).
This model's maximum context length is 40960 tokens. However, your request has 91714 input tokens. Please reduce the length of the input messages.
This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.
context_length_exceeded Your input exceeds the context window of this model. Please adjust your input and try again.
Please reduce the length of the messages or completion.
Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.
string_above_max_length Invalid 'messages[1].content': string too long. Expected a string with maximum length 1048576, but got a string with length 2000000 instead.
invalid_request_error prompt is too long: 208310 tokens > 200000 maximum
input length and `max_tokens` exceed context limit: 199000 + 20000 > 200000, decrease input length or `max_tokens` and try again
The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).
The input token count exceeds the maximum number of tokens allowed 1048575.
Input is too long for requested model.
Malformed input request: expected maxLength: 400000, actual: 500000, please reformat your input and try again.
Too many input tokens. Max input tokens: 8192, request input token count: 10000
The model returned the following errors: Input is too long. Max length is 8192 tokens
Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length
too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000. Try using a shorter prompt, or enabling prompt truncating.
too many tokens: size limit exceeded by 5000 tokens. Try using shorter or fewer inputs. The limit for this model is 128000 tokens.
Range of input length should be [1, 30720]
InvalidParameter <400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]
Total message token length exceed model limit (10000 tokens)
Invalid request: Your request exceeded model token limit: 8192
Input token length too long
`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens and 512 `max_new_tokens`
Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3000 `inputs` tokens and 20 `max_new_tokens`
Input validation error: `inputs` must have less than 4096 tokens. Given: 5000
The prompt is too long: 140000, model maximum context length: 131071
This model's maximum prompt length is 131072 but the request contains 140000 tokens.
The input (5000 tokens) is longer than the model's context length (4096 tokens).
Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5000 tokens: 4500 tokens from the input messages and 500 tokens for the completion.
Input length (5000 tokens) exceeds the maximum allowed length (4090 tokens). Use a shorter input or enable --allow-auto-truncate.
length of prompt_tokens (33000) must be less than max_seq_len (32768).
Prompt length (5000) exceeds maximum input length (4096).
The sum of prompt length (5000.0) and query length (0) should not exceed max_num_tokens (4096)
Encountered an error in forward function: input length 33000 exceeds max input length 32768. Set log level to info and check TRTGptModel logs for how maximum input length is set
the request exceeds the available context size, try increasing it
exceed_context_size_error request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it
input is too large to process. increase the physical batch size
the input is too large (5000 tokens) for the context of 4096 tokens
prompt too long (570 tokens, max 508)
input length exceeds maximum context length
the input length exceeds the context length
prompt too long; exceeded max context length by 100 tokens
Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input
The number of tokens to keep from the initial prompt is greater than the context length.
litellm.ContextWindowExceededError: litellm.BadRequestError: this prompt has 9000 tokens
This endpoint's maximum context length is 131072 tokens. However, you requested about 200000 tokens (199000 of text input, 1000 in the output). Please reduce the length of either one, or use the "middle-out" transform to compress your prompt automatically.
Request prompt has 5000 tokens in total, larger than the model input length limit 4096.
Prompt exceed context window size: 4096
Prompt length 5000 is greater than max_seq_len 4096
Prompt length is greater than max_seq_len
internal error happened, status code ResponseType.INPUT_LENGTH_ERROR
The input length 5000 is larger than session_len 4096
Requested tokens (2138) exceed context window of 2048
The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.
Input prompt (5000 tokens) is too long and exceeds limit of 4096
You passed 5001 input tokens and requested 0 output tokens. However, the model's context length is only 4096 tokens, resulting in a maximum input length of 4096 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=5001)
tokens_limit_reached Request body too large for gpt-4o model. Max size: 8000 tokens.
The estimated number of input and maximum output tokens (9000) exceeded this model context window limit (8192).
Prompt has 5000 tokens, which exceeds the limit of 4096
1261 Prompt 超长
输入长度超过模型上限
invalid params, context window exceeds limit (2013)
Input length 5000 exceeds the maximum length 4096
Requested generation length 2048 is not possible! The provided prompt is 5000 tokens long, so generating 2048 tokens requires a sequence length of 7048, but the maximum supported sequence length is just 4096!
Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192
PromptTooLong: Prompt length exceeds maximum input length
the number of input tokens 5000 cannot exceed the total tokens limit 4096 for this model
Token indices sequence length is longer than the specified maximum sequence length for this model (5000 > 4096).
The prompt (5000 tokens) does not fit the context window (4096 tokens)
prompt_tokens: 9000 > n_ctx: 8192
Conversation is too long: 9000 tokens, the model takes at most 8192
The context (9000 tokens) overflows the window of 8192
seq_len 9000 > max_position_embeddings 8192
The request contains 33000 tokens, but the server accepts at most 32768
Token count 33000 is above the limit of 32768
The prompt (5000 tokens) exceeds the KV cache capacity (4096 tokens)
KV cache is too small for the sequence of 5000 tokens
The text is too long: 9000 tokens, the maximum is 8192
Number of prompt tokens (9000) out of range, only 8192 are supported
""".strip().splitlines()

OTHERS = """
Rate limit reached for gpt-4 in organization org-x on tokens per min (TPM): Limit 10000, Used 9000, Requested 3000. Please try again in 6s.
Request too large for model `m` in organization `o` on tokens per minute (TPM): Limit 6000, Requested 8000, please reduce your message size and try again.
This request would exceed your organization's rate limit of 40,000 input tokens per minute
Number of request tokens has exceeded your per-minute rate limit
Number of concurrent connections has exceeded your rate limit
Too many tokens, please wait before trying again.
Too many tokens per day, please wait before trying again.
Too many requests
Too many requests, the limit is 60 requests per minute
insufficient_quota You exceeded your current quota, please check your plan and billing details.
Your credit balance is too low to access the API. Please go to Plans & Billing.
This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 1234.
Insufficient Balance
max_tokens is too large: 50000. This model supports at most 4096 completion tokens, whereas you provided 50000.
max_tokens: 50000 > 8192, which is the maximum allowed number of output tokens for this model
`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model
'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your request has 100 input tokens (5000 > 4096 - 100).
Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 8193 (exclusive).
Range of max_tokens should be [1, 8192]
max_tokens must be at least 1, got -5.
max_completion_tokens must be at least 16
Invalid max_tokens value, the valid range of max_tokens is [1, 8192]
max_tokens exceeds the model token limit
max_tokens (9000) exceeds the model's maximum output
Input validation error: `max_new_tokens` must be <= 512. Given: 1000
You requested 5000 output tokens but the limit is 4096
`max_tokens` must be greater than `thinking.budget_tokens`
thinking.budget_tokens: Input should be greater than or equal to 1024
Requested max_tokens 9000 exceeds the completion token limit 8192.
temperature: Input should be less than or equal to 2
Input should be a valid integer, unable to parse string as an integer
Input validation error: `temperature` must be strictly positive
temperature must be in [0, 2], got 3.0
String should have at most 64 characters
Invalid 'user': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.
Invalid 'prompt_cache_key': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.
Invalid 'metadata.a': string too long. Expected a string with maximum length 512, but got a string with length 600.
top_logprobs must be less than or equal to 20
Requested sample logprobs of 50, which is greater than max allowed: 20
Maximum number of stop sequences is 4
Invalid 'stop': the maximum length of each stop sequence is 64 characters
messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes
Image size is too large: the maximum is 20 MB
messages: at least one message is required
prompt must not be empty
The prompt length must be greater than 0
input is too short: at least 3 tokens
input of 3 tokens is too small for this model
The cached content is of 1000 tokens. The minimum token count to start caching is 4096.
n must be less than or equal to 128
seed must be less than 9223372036854775807
Too many tools: the maximum is 128
Invalid schema for response_format: the maximum depth of the schema is 5
The server is overloaded: queue length 100 exceeds the maximum queue length 64
The engine is currently overloaded, please try again later
CUDA out of memory. Tried to allocate 20.00 MiB
Failed to process the prompt: internal server error
Invalid prompt: your prompt was flagged as potentially violating our usage policy.
The input may contain sensitive information.
Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.
Unrecognized request argument supplied: min_p
model 'm' not found
The model `m` does not exist or you do not have access to it.
Incorrect API key provided
Missing required parameter: 'messages'.
Invalid type for 'messages': expected an array of messages, but got a string instead.
This model does not support system messages in the input
Conversation roles must alternate user/assistant/user/assistant
No endpoints found that can handle the requested parameters.
Upstream request timeout after 600 s
Service unavailable: maximum number of concurrent requests reached
batch size 300 exceeds the maximum of 256
File size exceeds the limit of 512 MB
Invalid value: 'xhigh'. Supported values are: 'low', 'medium', and 'high'.
logit_bias has too many entries: at most 300
context deadline exceeded
read tcp 127.0.0.1: request body too large
capacity_exceeded The model is at capacity: the maximum of 100 requests with long contexts is reached
""".strip().splitlines()


@pytest.mark.parametrize("text", TOO_LONG)
def test_a_prompt_that_is_too_long_is_known_by_its_names(text: str) -> None:
    """What is sent, its measure and a comparison are in one sentence."""
    assert is_too_long(text)


@pytest.mark.parametrize("text", OTHERS)
def test_other_limits_and_errors_are_no_long_prompts(text: str) -> None:
    """Those of a reply, a rate, an account, an image or a parameter."""
    assert not is_too_long(text)
