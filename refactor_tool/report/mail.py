"""One mail of a patch series as `git format-patch` shapes it: identity, headers, folding, transfer encoding."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable

from refactor_tool.model import UsageError
from refactor_tool.record import record

#: Characters that have no place in a header, a message or a line for people: controls, what turns the direction
#: of writing, lone surrogates.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


@record
class Identity:
    """A person or program as git knows them."""

    name: str
    mail: str

    @classmethod
    def parse(cls, text: str, what: str) -> Identity:
        """Read `Name <mail>`; `what` says in the `UsageError` whose identity it is."""
        match = re.fullmatch(r'([^<>@"\\]+) <([!-;=?-~]+@[!-;=?-~]+)>', text)
        # git am puts the address in the place of a shorter or longer name.
        if not match or CONTROL.search(text) or match[1] != match[1].strip() or not 3 <= len(match[1].encode()) <= 60:
            raise UsageError(
                f'the {what} {text!r} is not of the form "Name <mail>" with a name of 3 to 60 bytes',
                'write it like "Ada Lovelace <ada@example.org>"',
            )
        return cls(match[1], match[2])

    def __str__(self) -> str:
        return f"{self.name} <{self.mail}>"


@record
class Envelope:
    """What all mails of one series share; `sent_at` is in unix seconds, `version` ends each mail."""

    sender: Identity
    sent_at: int
    total: int
    version: str

    def mail(self, number: int, title: str, text: str, rest: bytes = b"") -> bytes:
        """Return mail `number` of `total`; `rest` follows the text and may hold any bytes.

        Like format-patch, declares a charset only where title or text need one. Bytes that transport or
        `git am`, which drops a CR before LF, would change go as quoted-printable.
        """
        body = text.encode() + rest + f"-- \n{self.version}\n\n".encode()
        encoding = "" if (title + text).isascii() else "8bit"
        if _is_fragile(body):
            body, encoding = _quoted_printable(body), "quoted-printable"
        headers = [
            f"From {'0' * 40} Mon Sep 17 00:00:00 2001",
            _from_header(self.sender),
            f"Date: {_date(self.sent_at)}",
            _subject_header(f"Subject: [PATCH {number:0{len(str(self.total))}}/{self.total}] ", title),
        ]
        if encoding:
            headers += (
                "MIME-Version: 1.0",
                "Content-Type: text/plain; charset=UTF-8",
                f"Content-Transfer-Encoding: {encoding}",
            )
        return "\n".join((*headers, "", "")).encode() + body


def filled(head: str, words: Iterable[str], width: int, indent: str) -> str:
    """Put words after `head`, each on a new line that begins with `indent` where it would end after `width`."""
    lines = [head]
    for word in words:
        joined = lines[-1] + ("" if lines[-1].endswith(" ") else " ") + word
        if len(joined) > width and lines[-1].strip():
            lines.append(indent + word)
        else:
            lines[-1] = joined
    return "\n".join(lines)


def _is_fragile(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return True
    return b"\r" in body or b"\0" in body or any(len(line) > 998 for line in body.split(b"\n"))


def _quoted_printable(body: bytes) -> bytes:
    lines = b"\n".join(binascii.b2a_qp(line, istext=False) for line in body.split(b"\n"))
    return re.sub(rb"(?m)^From ", b"From=20", lines)  # a soft break may have put it at the beginning of a line


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _date(seconds: int) -> str:
    """Return unix seconds as a mail date in UTC; for a time that no commit has, the epoch."""
    from datetime import UTC, datetime  # here, since a series is not made in most runs

    at = datetime.fromtimestamp(seconds if 0 <= seconds < 2**32 else 0, UTC)
    return f"{_DAYS[at.weekday()]}, {at.day} {_MONTHS[at.month - 1]} {at.year} {at:%H:%M:%S} +0000"


def _subject_header(head: str, title: str) -> str:
    if _is_plain(title):
        return filled(head, title.split(" "), 78, " ")
    return head + _encoded_words(title, len(head), re.compile(r"[!-<>@-^`-~]"))


def _from_header(sender: Identity) -> str:
    name, width = sender.name, 78
    if not _is_plain(name):
        name, width = _encoded_words(name, len("From: "), re.compile(r"[A-Za-z0-9!*+/-]")), 76
    elif re.search(r"[(),.:;\[\]]", name):
        name = f'"{name}"'
    line = f"From: {name}"
    fold = "\n" if len(line.rpartition("\n")[2]) + len(f" <{sender.mail}>") > width else ""
    return f"{line}{fold} <{sender.mail}>"


def _is_plain(text: str) -> bool:
    return text.isascii() and "=?" not in text


def _encoded_words(text: str, column: int, literal: re.Pattern[str]) -> str:
    """Return RFC 2047 words of at most 76 columns; `literal` matches what needs no encoding."""
    start = "=?UTF-8?q?"
    parts = [start]
    column += len(start)
    for char in text:
        piece = char if literal.fullmatch(char) else "".join(f"={byte:02X}" for byte in char.encode())
        if column + len(piece) + len("?=") > 76:
            parts += ("?=\n ", start)
            column = len(start) + 1
        parts.append(piece)
        column += len(piece)
    return "".join((*parts, "?="))
