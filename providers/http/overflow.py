"""Whether a server's words say that the prompt is too long for the model.

Servers say it in hundreds of ways. So what counts is no list of sentences, but that one sentence
names what was sent (prompt, input, context, …), its measure (tokens, length, window, …) and a
comparison (exceeds, too long, must be less than, …), and is about nothing else that has a limit:
the reply, a rate, an account, an image.
"""

from __future__ import annotations

import re

_CODE = re.compile(
    r"context_?(?:length|window|size)_?exceed|exceed_context_size|input_length_error"
    r"|prompt_?too_?long|tokens_limit_reached|request_too_large"
)
"""Names of the error itself."""
_OF_REPLY = re.compile(
    r"max_(?:(?:completion|new|output|gen\w*|response)_)?tokens|max(?:output|new)?tokens"
    r"|(?:budget|thinking|reasoning)_tokens"
)
"""Names of the limit of a reply."""
_REPLY_TOO_LONG = re.compile(
    rf"(?<!\+ `)(?:{_OF_REPLY.pattern})\W.{{0,60}}"
    r"(?:too (?:large|big|high)|must be (?:less|at most)|exceeds?\b(?! context)|out of range)"
)
_RATE = re.compile(
    r"per[ _-]?(?:min|hour|day|second|month)|\btp[md]\b|rate.?limit|quota|throttl|daily"
    r"|please wait|credit|billing|afford|concurren|overloaded|at capacity|capacity_exceeded"
)
"""A limit of time, money or machines."""
_ELSE = re.compile(
    r"image|audio|video|\bfiles?\b|pixel|\bbytes\b(?!.*context)|queue|logprobs|stop.?sequence"
    r"|\btools?\b|functions?\b|metadata|schema|cached|caching|cache_|\buser\b|\bkey\b|header"
    r"|temperature|\bseed\b|too short"
    r"|must (?:be |have )?(?:at least|greater|more|larger)|must not be empty"
)
"""Something else that is too long, or a prompt that is too short."""
_NO_SUBJECT = re.compile(
    r"input (?:validation|should)|invalid (?:input|prompt|request)\b|context caching"
    r"|in the context of|(?:not|un)supported"
)
"""Words that look like names of a prompt, and are none."""
_SENT = re.compile(
    r"prompt|\binputs?\b|input_|context|\bctx\b|messages?\b|sequence|\bseq(?:_|\b)|session_len"
    r"|conversation|\bquery\b|\bthe request\b|\byour request\b|\brequest (?:has|body|\()"
    r"|\brequested (?:token|a total|about)"
)
_MAYBE_SENT = re.compile(
    r"\btext\b|tokens? (?:count|number)|(?:number of|total) tokens|tokens in total"
)
"""Names of a prompt where nothing names a reply."""
_REPLY = re.compile(r"output|completion|response|generat|repl(?:y|ies)\b|new[ _]tokens")
_MEASURE = re.compile(
    r"token|length|(?:\b|_)len\b|\blong|size|window|characters|\bchars\b|shorte"
    r"|too large to process"
)
_COMPARED = re.compile(
    r"exceed|too (?:long|large|many|big)|(?:longer|greater|larger|more|bigger|higher) than"
    r"|(?:less|fewer|smaller) than|at most|(?:cannot|must not|not) be more|\blimit|maximum|\bmax"
    r"|reduc|shorten|shorter|overflow|beyond|above|surpass|<=?|(?<![-=])>|range of|not enough"
    r"|(?:cache|context|window)(?: \w+){0,3} too small for"
    r"|\bover\b|does(?: not|n.t) fit|out of (?:range|context|room)|truncat|only \d"
)
_MODEL = re.compile(r"too many (?:input )?tokens|model(?:'s)? (?:token|context|length) limit")
"""What can be of nothing but a prompt, where it is no reply and no rate."""
_CHINESE = re.compile(
    r"(?:prompt|tokens?|输入|上下文|提示词?|文本|消息).{0,20}(?:超长|过长|太长|超过|超出|超限)"
)
_SENTENCE = re.compile(r"(?<=[.;!?])\s+|\n")


def is_too_long(text: str) -> bool:
    """Whether the code and message of an error say that a prompt is too long for the model's
    window, alone or with its reply.
    """
    text = text.lower()
    if is_other_limit(text):
        return False
    if _CODE.search(text.replace(" ", "_")) or _CHINESE.search(text) or _MODEL.search(text):
        return not _ELSE.search(text) or bool(_CODE.search(text))
    return any(map(_is_about_prompt, _SENTENCE.split(text)))


def is_other_limit(text: str) -> bool:
    """Whether a text is about the length of a reply, or about a limit of time or money."""
    text = text.lower()
    return bool(_REPLY_TOO_LONG.search(text) or _RATE.search(text))


def _is_about_prompt(sentence: str) -> bool:
    bare = _NO_SUBJECT.sub("", _OF_REPLY.sub("", sentence))
    if _ELSE.search(bare):
        return False
    is_sent = _SENT.search(bare) or (_MAYBE_SENT.search(bare) and not _REPLY.search(bare))
    return bool(is_sent and _MEASURE.search(bare) and _COMPARED.search(bare))
