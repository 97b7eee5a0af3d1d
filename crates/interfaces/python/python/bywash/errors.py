"""What can go wrong. The messages are those of the ``bywash`` command; the operating system's errors are ``OSError`` as everywhere."""

__all__ = [
    "AuthenticationFailed",
    "BadArgument",
    "Damaged",
    "EngineFailed",
    "Error",
    "InternalError",
    "NoKeyFits",
    "NotEncrypted",
    "Truncated",
    "Unavailable",
    "Unsupported",
    "WrongKey",
    "WrongPassphrase",
]


class Error(Exception):
    """All of them."""


class BadArgument(Error, ValueError):
    """The call is to be mended: an unknown name, a key or nonce of the wrong length, nothing to encrypt for."""


class Damaged(Error):
    """An encrypted file is not as it was written: changed, torn, swapped, or appended to."""


class Truncated(Damaged):
    """An encrypted file ends before it should."""


class NotEncrypted(Error):
    """It is no file in this format."""


class Unsupported(Error):
    """A later version of the format, or an algorithm that no engine here computes."""


class WrongKey(Error):
    """Nothing of what was given opens it."""


class WrongPassphrase(WrongKey):
    """It is opened by passphrases alone, and the ones given are others."""


class NoKeyFits(WrongKey):
    """None of the keys given opens it; the message says what would."""


class AuthenticationFailed(Error):
    """A tag does not belong to this text, nonce, associated data and key. Which of them is wrong is not told, on purpose."""


class EngineFailed(Error):
    """An engine took the work and failed."""


class Unavailable(Error):
    """An engine, a broker or a key of a broker's vault that is not there just now."""


class InternalError(Error):
    """A fault of Bywash itself: please report it, with the message."""
