"""What obstore says goes over many lines, with the server's XML and its own insides; here it is one: what, and the way out."""

from __future__ import annotations

import re

LONGEST = 300
"""Characters of what is not known here: enough for a sentence of the server's."""

NO_BUCKET = "there is no such bucket; check its name, the endpoint and the region, or make it"
CREDENTIALS = "check the credentials in each worker's environment, or in the options, and what they permit"
DENIED = ("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "PermissionDenied", "Unauthenticated")


NO_ANSWER = "no good answer"


def is_no_answer(error: Exception) -> bool:
    """Whether it may be done again, for the server was away or had too much to do."""
    return in_a_line(error).startswith(NO_ANSWER)


def in_a_line(error: Exception) -> str:
    """What one of obstore's errors says, with the way out."""
    text = str(error)
    what, _, inside = text.partition("\n\nDebug source:")
    code, message = _of_xml(what, "Code"), _of_xml(what, "Message")
    if code in ("NoSuchBucket", "ContainerNotFound") or "bucket does not exist" in what:
        return NO_BUCKET
    if code in DENIED or type(error).__name__ in ("PermissionDeniedError", "UnauthenticatedError"):
        return f"the store refuses it ({_joined(code, message) or type(error).__name__}); {CREDENTIALS}"
    for known in (_of_options, _of_a_name, _of_a_connection):
        if said := known(error, what, inside):
            return said
    if isinstance(error, FileNotFoundError):
        return "it is not there, or not any more; run again"
    return _joined(code, message) or _first(re.sub(r"Error performing (\w+) \S+ in \S+", r"\1", what))


def _of_xml(text: str, tag: str) -> str:
    found = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    return _first(found[1]) if found else ""


def _joined(code: str, message: str) -> str:
    return ": ".join(part for part in (code, message) if part)


def _first(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[:LONGEST] + "..."


def _of_options(error: Exception, what: str, inside: str) -> str | None:
    if key := re.search(r"Configuration key: '(.*?)' is not valid for store '(.*?)'", what):
        return f"a store of {key[2]} has no option {key[1]!r}; the options (--store, source_options, target_options) are those of obstore.store.from_url"
    if "Unable to recognise URL" in what:
        return "it is no store's URL; name a folder, or a URL such as s3://bucket/prefix, gs://bucket/prefix or az://container/prefix"
    if "BadScheme" in inside:
        return 'its endpoint is http:// and no https://, which has to be allowed with {"client_options": {"allow_http": true}}'
    if isinstance(error, TypeError):
        return f"one of its options is no such value as it takes ({_first(what)})"
    return None


def _of_a_name(error: Exception, what: str, inside: str) -> str | None:
    """A name that obstore does not take ends a listing for good: a page that has one is not given."""
    if type(error).__name__ != "InvalidPathError":
        return None
    key = re.search(r'[Pp]ath "(.*?)"(?: contained|: )', what, re.DOTALL)
    way_out = "rename or remove it, or name a folder of the bucket that it is not in"
    return f"it has an object whose key, {ascii(key[1]) if key else 'unknown'}, obstore does not take, nor lists what is beside it; {way_out}"


def _of_a_connection(_error: Exception, what: str, inside: str) -> str | None:
    if "HTTP error" not in what and "Server returned non-2xx status code: 5" not in what:
        return None
    place = re.search(r"Error performing \w+ \w+://([^/\s]+)", what)
    # The system's words, inside, say more than those before them.
    reasons = [(r'message: "(.*?)"', inside), ("(TimedOut)", inside), (r"status code: (\d+ [A-Za-z ]+)", what), (r"HTTP error: ([^\n]*)", what)]
    why = next((_first(found[1]) for pattern, text in reasons if (found := re.search(pattern, text))), "no reason given")
    retried = f", {found[0]}" if (found := re.search(r"after \d+ retries", what)) else ""
    return f"{NO_ANSWER} from {place[1] if place else 'its server'} ({why}{retried}); is it running, and the endpoint right?"
