"""How much a test proves, before and after: counted low before and high after, so that an honest rewrite is no loss."""

import re
from collections import Counter
from collections.abc import Mapping

from agentd.trace.test_cases import UNBOUNDED, Assertion, TestCase

Helpers = Mapping[str, TestCase]

# Assertions of the usual libraries; any other of such a name is somebody's own and may hold many.
_PLAIN = re.compile(
    r"assert(?:_(?:eq|ne|matches|called\w*|not_called|has_calls|any_call|awaited\w*|that|type|never)"
    r"|(?:Not)?(?:Almost)?(?:Equals?|Same|True|False|Null|Is|IsNone|IsNot\w*|IsInstance|In|Raises\w*|Warns\w*|Greater\w*"
    r"|Less\w*|Regex|Count\w*|Dict\w*|List\w*|Tuple\w*|Set\w*|Sequence\w*|MultiLine\w*|Logs|That|Throws\w*"
    r"|DoesNotThrow|ArrayEquals|InstanceOf|Contains\w*))?"
)
_MAY_ASSERT = re.compile(r"_*(?:assert|check|verify|ensure|should|expect|must|require|validate|compare)", re.IGNORECASE)


def count_proved(old: TestCase, new: TestCase, old_helpers: Helpers, new_helpers: Helpers) -> tuple[int, int]:
    """The assertions before, and what may be left of them."""
    before = sum(one.least for one in old.asserts) + sum(_reach(one.name, old_helpers) > 0 for one in old.calls)
    known = Counter([*(one.text for one in old.asserts), *(one.text for one in old.calls)])
    after = 0
    for one in new.asserts:
        after += min(1, one.most) if _take(known, one.text) else most_assertions(one, new_helpers)
    for call in new.calls:
        reach = _reach(call.name, new_helpers)
        if _take(known, call.text):
            was = _reach(call.name, old_helpers)
            after += 1 if reach or (was and call.name not in new_helpers) else 0  # it may have moved to another file
        elif reach:
            after += reach * call.factor
        elif call.name not in new_helpers and _MAY_ASSERT.match(call.name):
            after += UNBOUNDED
    after += sum(UNBOUNDED for name in _mentioned(new, new_helpers) if name not in old.words)
    return before, after


def most_proved(case: TestCase, helpers: Helpers) -> int:
    """What it may prove at most."""
    own = sum(most_assertions(one, helpers) for one in case.asserts)
    called = sum(
        _reach(one.name, helpers) or (UNBOUNDED if _is_unknown(one.name, helpers) else 0) for one in case.calls
    )
    return own + called + UNBOUNDED * len(_mentioned(case, helpers))


def most_assertions(one: Assertion, helpers: Helpers) -> int:
    if one.name in helpers:
        return _reach(one.name, helpers)
    if one.name.startswith("assert") and not _PLAIN.fullmatch(one.name):
        return UNBOUNDED
    return one.most


def _is_unknown(name: str, helpers: Helpers) -> bool:
    return name not in helpers and bool(_MAY_ASSERT.match(name))


def _mentioned(case: TestCase, helpers: Helpers) -> list[str]:
    """Helpers handed on instead of called: `rows.forEach(check)`."""
    called = {one.name for one in case.calls} | {one.name for one in case.asserts}
    return [name for name in case.words & helpers.keys() if name not in called and _reach(name, helpers)]


def _reach(name: str, helpers: Helpers) -> int:
    """What a helper asserts, with the helpers that it calls in turn."""
    helper = helpers.get(name)
    if helper is None:
        return 0
    inner = (helpers[one.name] for one in helper.calls if one.name in helpers and one.name != name)
    return min(_own(helper) + sum(_own(one) for one in inner), UNBOUNDED)


def _own(helper: TestCase) -> int:
    return sum(one.most for one in helper.asserts)


def _take(known: Counter[str], text: str) -> bool:
    known[text] -= 1
    return known[text] >= 0
