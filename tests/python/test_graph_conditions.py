"""What code under a condition on a tensor may change, and what the functions that it calls see."""

import types

import pytest
from test_graph_control import check, same, tensor

import morel as ms
from morel import nn

# --- what a condition on a tensor must not change ---


class _Log(nn.Cell):
    def __init__(self):
        super().__init__()
        self.cache = {}

    def construct(self, x):
        if x.sum() > 0:
            self.cache["k"] = 1
        return x


def _set_item(x, d, _items):
    if x.sum() > 0:
        d["k"] = 10
    return x * d["k"]


def _append(x, _d, items):
    if x.sum() > 0:
        y = x
    else:
        items.append(2)
        y = x * 2
    return y


def _extend(x, _d, items):
    if x.sum() > 0:
        items += [2]
    return x * len(items)


def _update(x, d, _items):
    while x.sum() < 10:
        d.update(k=3)
        x = x * 2
    return x


def _pop(x, d, _items):
    return x * d.pop("k") if x.sum() > 0 else x


def _in_a_tuple(x, d, items):
    pair = (d, [items])
    if x.sum() > 0:
        pair[1][0][0] = x * 5
    return x


def _made_before(x, _d, _items):
    own = [x]
    if x.sum() > 0:
        own[0] = x * 5
    return own[0]


def _of_the_caller(x, _d, items):
    def helper(y):
        if y.sum() > 0:
            return y
        items.append(1)
        return y * 2

    return helper(x)


def _variable_of_the_caller(x, _d, _items):
    count = 0

    def bump(y):
        nonlocal count
        if y.sum() > 0:
            count += 1
        return y

    return bump(x) * count


def _variable_in_an_expression(x, _d, _items):
    y = 1
    z = (y := 2) if x.sum() > 0 else 3
    return x * y * z


_HELPER = types.ModuleType("helper")
_HELPER.LOG = []


def _list_of_another_module(x, _d, _items):
    if x.sum() > 0:
        _HELPER.LOG.append(1)
    return x


_SHARED = {"k": 1}


def _of_the_module(x, _d, _items):
    if x.sum() > 0:
        _SHARED["k"] = 2
    return x


def _of_a_cell(x, _d, _items):
    return _LOG(x)


_LOG = _Log()


CHANGES = [
    (_set_item, "the dict 'd' is changed within 'if' on a tensor"),
    (_append, "the list 'items' is changed within 'if'"),
    (_extend, "the list 'items' is changed within 'if'"),
    (_update, "the dict 'd' is changed within 'while'"),
    (_pop, "the dict 'd' is changed within 'if'"),
    (_in_a_tuple, "the list 'items' is changed within 'if'"),
    (_made_before, "the list 'own' is changed within 'if'"),
    (_of_the_caller, "the list 'items' is changed within 'if'"),
    (_variable_of_the_caller, "the variable 'count' is changed within 'if'"),
    (_variable_in_an_expression, "the variable 'y' is changed within 'if'"),
    (_list_of_another_module, "the list 'helper.LOG' is changed within 'if'"),
    (_of_the_module, "the dict '_SHARED' is changed within 'if'"),
    (_of_a_cell, "the dict 'self.cache' is changed within 'if'"),
]


@pytest.mark.parametrize("function,text", CHANGES, ids=[case[0].__name__ for case in CHANGES])
def test_containers_of_outside_do_not_change_under_a_condition(function, text):
    d, items = {"k": 1}, [1]
    with pytest.raises(NotImplementedError, match=text) as caught:
        ms.jit(lambda x: function(x, d, items))(tensor(1.0, 2.0))
    assert "test_graph_conditions.py" in str(caught.value) and "^" in str(caught.value)
    assert (d, items, _SHARED, _LOG.cache) == ({"k": 1}, [1], {"k": 1}, {})


def test_containers_of_the_call_itself_change():
    def collects(x):
        items, table = [x], {}
        if x.sum() > 10:
            return items[0]
        items.append(x * 2)
        table["sum"] = items[0] + items[1]
        if x.sum() > 2:
            inner = [x]
            inner.append(x)
            items[0] = inner[1]
            return items[0] + len(items)
        items += [x * 4]
        return table["sum"] + len(items)

    def gives_a_list(x):
        items = []
        if x.sum() > 2:
            items.append(x)
            return items
        items.append(x * 2)
        return items

    for value in (tensor(8.0, 9.0), tensor(1.0, 2.0), tensor(0.5, 0.25)):
        same(ms.jit(collects)(value), collects(value))
        same(ms.jit(gives_a_list)(value), gives_a_list(value))


def test_functions_of_other_modules_do_not_change_what_is_theirs(tmp_path, monkeypatch):
    (tmp_path / "counting.py").write_text(
        "COUNTS = {'calls': 0}\n\n\ndef count(x):\n    COUNTS['calls'] += 1\n    return x\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import counting

    def function(x):
        if x.sum() > 0:
            x = counting.count(x)
        return x

    with pytest.raises(NotImplementedError, match="the dict 'COUNTS' is changed within 'if' on a tensor"):
        ms.jit(function)(tensor(1.0, 2.0))
    assert counting.COUNTS == {"calls": 0}
    ms.jit(counting.count)(tensor(1.0, 2.0))  # without a condition it is Python's own business
    assert counting.COUNTS == {"calls": 1}


# --- functions that see the variables of the code that calls them ---


def sees_what_the_branch_assigned(x):
    y = x

    def twice():
        return y * 2

    if x.sum() > 0:
        y = y + 1
        z = twice()
    else:
        y = y - 1
        z = twice() * 3
    return z + twice()


def sees_what_the_turn_assigned(x):
    y, total = x, x * 0

    def step():
        return y * 0.5

    while y.sum() > 1:
        y = y - 0.25
        total = total + step()
    return total, y


def changes_a_variable(x):
    count = x * 0

    def bump():
        nonlocal count
        count = count + x

    if x.sum() > 0:
        bump()
        bump()
    else:
        bump()
    return count


def leaves_with_a_variable(x):
    y = x

    def current():
        return y

    if x.sum() > 3:
        y = y * 3
        return current()
    y = y + 5
    return current()


CLOSURES = [sees_what_the_branch_assigned, sees_what_the_turn_assigned, changes_a_variable, leaves_with_a_variable]


@pytest.mark.parametrize("function", CLOSURES)
@pytest.mark.parametrize("values", [(1.0, 1.5), (-1.0, -2.0), (4.0, 4.0)])
def test_functions_see_what_a_condition_changed(function, values):
    check(function, tensor(*values), order=1)
