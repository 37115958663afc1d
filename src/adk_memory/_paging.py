"""Pages of a list: a cursor is a place in time and arrival, valid for the one list that it was made for."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from adk_memory._scope import Scope
from adk_memory._validation import microseconds
from adk_memory.errors import ValidationError
from adk_memory.filters import Filter

_PLACE: Final = struct.Struct(">qq")
_DIGEST_BYTES: Final = 8  # with the place 24 bytes: 32 characters without padding
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ended: the instant of its last entry, and when among all that one arrived."""

    instant: datetime
    arrival: int


def cursor(place: Place, scope: Scope, filter: Filter | None) -> str:
    """Return the text from which `place_of` reads the place again, for the same scope and filter."""
    packed = _PLACE.pack(microseconds(place.instant), place.arrival)
    return base64.urlsafe_b64encode(packed + _digest(packed, scope, filter)).decode()


def place_of(after: object, scope: Scope, filter: Filter | None) -> Place | None:
    """Return the place that a cursor names, `None` without one.

    The digest is a check and no secret. A cursor that was made up can do no harm: it only says from where on the
    caller's own list is read.

    Raises:
        ValidationError: it is no cursor of this scope and filter.
    """
    if after is None:
        return None
    if not isinstance(after, str):
        raise ValidationError(f"after must be the next of a page, got {type(after).__name__}")
    try:
        read = base64.b64decode(after.encode("ascii"), altchars=b"-_", validate=True)
        packed, digest = read[: _PLACE.size], read[_PLACE.size :]
        since_epoch, arrival = _PLACE.unpack(packed)
        place = Place(_EPOCH + timedelta(microseconds=since_epoch), arrival)
    except (UnicodeEncodeError, binascii.Error, struct.error, OverflowError):
        raise _refusal() from None  # it repeats the cursor
    if digest != _digest(packed, scope, filter):
        raise _refusal()
    return place


def _refusal() -> ValidationError:
    return ValidationError("after must be the next of a page of the same app, user, project and filter")


def _digest(packed: bytes, scope: Scope, filter: Filter | None) -> bytes:
    of_list = json.dumps([scope.app_name, scope.user_id, scope.projects, repr(filter)])
    return hashlib.sha256(packed + of_list.encode()).digest()[:_DIGEST_BYTES]
