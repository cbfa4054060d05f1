"""Change the channel parameter of an executor's method wherever its signature is written.

That is the interface, the function that forwards to it, every type that implements it in a file of any build tag, tests
included, and every caller. Each of these places says for itself whether it is changed already.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from refactor_tool.codemods._carried import is_carried
from refactor_tool.codemods._k3s import EXECUTOR, package
from refactor_tool.codemods._shapes import (
    combined,
    drop_item,
    is_last_use,
    names_in,
    ready_chan,
    replace_use,
    uses_of,
    whole_function,
)
from refactor_tool.gosrc import ast
from refactor_tool.gosrc.tree import Occurrence, Tree
from refactor_tool.gosrc.walk import trail
from refactor_tool.gosrc.words import word_places
from refactor_tool.model import Change, Edit, Leave, Manual, Rewrite, Span, Verdict
from refactor_tool.record import record

#: The argument that is the channel where no declaration has it any more: all these methods take the context first.
_AFTER_CONTEXT = 1
#: What may stand before a method of an interface, and how many blanks between them are looked through.
_BEFORE_METHOD = (b"{", b";", b"\n", b"*/")
_LOOK_BACK = 80


@record
class Place:
    """One place where a method's signature is written, and what becomes of it. `owner` is an implementer's type."""

    path: str
    span: Span
    verdict: Verdict
    shape: Literal["interface", "forwarder", "implementer", "caller", "demand"]
    owner: str = ""


@record
class _Declared:
    path: str
    decl: ast.FuncDecl | ast.Method
    shape: Literal["interface", "forwarder", "implementer"]
    owner: str = ""

    @property
    def head(self) -> Span:
        return self.decl.signature if isinstance(self.decl, ast.FuncDecl) else self.decl.span

    @property
    def channel(self) -> int | None:
        return channel_index(self.decl.params)


def dropped(tree: Tree, method: str, accessor: str) -> Iterator[Place]:
    """Yield what becomes of each place where `method` loses its channel; uses of that ask `accessor` instead."""
    declared = tuple(_declared(tree, method))
    for place in declared:
        verdict, end = _without_channel(tree, place, method, accessor)
        yield Place(place.path, Span(place.head.start, max(place.head.end, end)), verdict, place.shape, place.owner)
    yield from _callers(tree, method, declared, accessor.removesuffix("Chan"))
    yield from _demands(tree, method)


def renamed(tree: Tree, method: str, old: str, new: str) -> Iterator[Place]:
    """Yield what becomes of each declaration of `method` whose channel is called `old`; callers have no part in it."""
    for place in _declared(tree, method):
        verdict, end = _with_name(tree, place, old, new)
        yield Place(place.path, Span(place.head.start, max(place.head.end, end)), verdict, place.shape, place.owner)


def demands(tree: Tree, method: str, *needles: bytes) -> Iterator[tuple[str, str, ast.Method]]:
    """Yield the interfaces that have a method, but the executor's: file, name ("" for one without), and the method.

    Wherever they are written: declared, asserted, or the type of something. `needles` as for `Tree.files_with`.
    """
    own = tree.interface(package(tree, EXECUTOR), "Executor")
    called = method.encode() + b"("
    for path in tree.files_with(*(needles or (method.encode(),))):
        data = tree.data(path)
        for at in word_places(data, method.encode()) if b"interface" in data and called in data else ():
            before = data[max(0, at.start - _LOOK_BACK) : at.start].rstrip(b" \t\r")
            if not data.startswith(b"(", at.end) or (before and not before.endswith(_BEFORE_METHOD)):
                continue
            asked = tree.interface_at(path, at)
            decl = tree.decl_at(path, at.start)
            named = isinstance(decl, ast.TypeDecl) and asked is not None and decl.type.span == asked.span
            if asked is None or (named and own is not None and (path, decl) == own[:2]):
                continue
            for found in asked.methods:
                if found.name_span == at:
                    yield path, decl.name if named and isinstance(decl, ast.TypeDecl) else "", found


def channel_index(params: Sequence[ast.Param]) -> int | None:
    """Return the place of the first parameter that is a readiness channel, None where there is none."""
    for at, param in enumerate(params):
        match param.type:
            case ast.ChanType(direction="recv" | "both", element=ast.StructType(fields=())):
                return at
            case _:
                pass
    return None


def _declared(tree: Tree, method: str) -> Iterator[_Declared]:
    executor = package(tree, EXECUTOR)
    for path, decl in tree.types(executor, "Executor"):
        if isinstance(decl.type, ast.InterfaceType):
            yield from (_Declared(path, found, "interface") for found in decl.type.methods if found.name == method)
    for path, function in tree.functions(executor, method):
        yield _Declared(path, function, "forwarder")
    for owner in tree.implementers(executor, "Executor"):
        for path, found in owner.methods:
            if found.name == method:
                yield _Declared(path, found, "implementer", owner.type)


def _demands(tree: Tree, method: str) -> Iterator[Place]:
    """Yield where another interface asks for the method with its channel, which no executor has any more."""
    for path, name, found in demands(tree, method):
        if channel_index(found.params) is not None:
            lost = Manual(
                f"{name or 'an interface without a name'} asks for {method} with a channel, which no executor takes"
                " any more",
                "drop the channel there, or rename the method if it is no executor's",
            )
            yield Place(path, found.span, lost, "demand")


# --- a declaration without its channel --------------------------------------------------------------


def _without_channel(tree: Tree, place: _Declared, method: str, accessor: str) -> tuple[Verdict, int]:
    """Return the verdict on one declaration, and where the last use of the parameter ends."""
    index = place.channel
    if index is None:
        return Leave(f"{method} takes no channel here any more", done=True), 0
    params = place.decl.params
    if len(params[index].names) > 1:
        text = tree.text(place.path, params[index].span)
        return Manual(f"two parameters share a type: {text}", f"drop the channel from {method} by hand"), 0
    parts: list[tuple[Change, ...] | Manual] = [
        drop_item(tree, place.path, [param.span for param in params], index, place.decl.params_span)
    ]
    uses = _uses(tree, place, params[index])
    for use in uses:
        parts.append(_asked_instead(tree, use, method, index, accessor))
    return combined(*parts), max((use.span.end for use in uses), default=0)


def _uses(tree: Tree, place: _Declared, param: ast.Param) -> tuple[Occurrence, ...]:
    """Return the uses of a function's parameter in its body."""
    if not param.names or not isinstance(place.decl, ast.FuncDecl):
        return ()
    own = param.names[0]
    return tuple(
        use
        for use in names_in(tree, place.path, place.decl.span, own.name)
        if isinstance(use.object, ast.LocalObject) and use.object.at == own.span and use.span != own.span
    )


def _asked_instead(tree: Tree, use: Occurrence, method: str, index: int, accessor: str) -> tuple[Change, ...] | Manual:
    """Replace one use of the parameter; where it is handed on to the same method of another executor, it goes."""
    call = _handed_on(tree, use, method)
    if call is not None:
        return drop_item(tree, use.path, [arg.span for arg in call.args], index, call.args_span)
    asked = ready_chan(tree, use.path, accessor, use.span)
    if isinstance(asked, Manual):
        return asked
    verdict = replace_use(tree, use, *asked)
    return verdict if isinstance(verdict, Manual) else verdict.changes


def _handed_on(tree: Tree, use: Occurrence, method: str) -> ast.Call | None:
    decl = whole_function(tree, use.path, use.span)
    for node in trail(decl, use.span) if decl is not None else ():
        if isinstance(node, ast.Call) and any(arg.span == use.span for arg in node.args):
            match tree.calls(use.path, node):
                case ast.PackageObject(name=name) | ast.FieldObject(name=name) if name == method:
                    return node
                case _:
                    pass
    return None


# --- a caller without the channel -------------------------------------------------------------------


def _callers(tree: Tree, method: str, declared: Sequence[_Declared], field: str) -> Iterator[Place]:
    own = {(place.path, param.names[0].span) for place in declared for param in _channel_params(place)}
    bodies = [(place.path, place.decl.span) for place in declared]
    arity, position = _arity(declared)
    for use in _calls(tree, method):
        call = tree.call_at(use.path, use.qualified) if use.role == "call" else None
        inside = any(path == use.path and span.contains(use.span) for path, span in bodies)
        if inside and call is not None and (len(call.args) == arity or _hands_on(tree, use.path, call, own)):
            continue
        if call is None and not any(place.channel is not None for place in declared):
            done = Leave(f"{use.name} has the type here that it has now", done=True)
            yield Place(use.path, use.qualified, done, "caller")
            continue
        span = call.span if call is not None else use.qualified
        yield Place(use.path, span, _call_without(tree, use, call, arity, position, field), "caller")


def _channel_params(place: _Declared) -> Iterator[ast.Param]:
    index = place.channel
    if index is not None and place.decl.params[index].names:
        yield place.decl.params[index]


def _hands_on(tree: Tree, path: str, call: ast.Call, own: set[tuple[str, Span]]) -> bool:
    """Tell whether an argument is the channel parameter of a declaration, which takes care of it."""
    objects = (tree.resolve(path, arg) for arg in call.args if isinstance(arg, ast.Ident))
    return any(isinstance(found, ast.LocalObject) and (path, found.at) in own for found in objects)


def _arity(declared: Sequence[_Declared]) -> tuple[int, int]:
    """Return how many arguments a call has without the channel, and which argument that is."""
    arity, position = 0, _AFTER_CONTEXT
    for place in declared:
        counts = [max(1, len(param.names)) for param in place.decl.params]
        arity = sum(counts) - (place.channel is not None)
        if place.channel is not None:
            return arity, sum(counts[: place.channel])
    return arity, position


def _calls(tree: Tree, method: str) -> Iterator[Occurrence]:
    executor = package(tree, EXECUTOR)
    owners = tree.implementers(executor, "Executor")
    targets: set[ast.PackageObject | ast.FieldObject] = {
        ast.PackageObject(executor, method),
        ast.FieldObject(executor, "Executor", method),
    }
    targets |= {ast.FieldObject(owner.package, owner.type, method) for owner in owners}
    return uses_of(tree, *targets)


def _call_without(tree: Tree, use: Occurrence, call: ast.Call | None, arity: int, position: int, field: str) -> Verdict:
    line = tree.line_text(use.path, use.span.start)
    wanted = f"call {use.name} without the channel: the executor knows by itself what to wait for"
    if call is None:
        return Manual(f"{use.name} is used as a value: {line!r}", wanted)
    if len(call.args) == arity and not call.ellipsis:
        return Leave(f"{use.name} is called without a channel already", done=True)
    if len(call.args) != arity + 1 or call.ellipsis:
        return Manual(f"the arguments of {use.name} are not known one by one: {line!r}", wanted)
    channel = call.args[position]
    while isinstance(channel, ast.Paren):
        channel = channel.x
    if not isinstance(channel, ast.Ident | ast.Selector):
        return Manual(f"the channel given to {use.name} is worked out in the call: {line!r}", wanted)
    if not is_carried(tree, use.path, channel, field):
        reason = f"the channel given to {use.name} is not the {field} that the executor waits for by itself: {line!r}"
        return Manual(reason, f"wait for it before the call, then {wanted}")
    if is_last_use(tree, use.path, channel.span):
        return Manual(f"the channel given to {use.name} is a local that has no other use: {line!r}", wanted)
    edits = drop_item(tree, use.path, [arg.span for arg in call.args], position, call.args_span)
    return combined(edits)


# --- a declaration with another name for its channel ------------------------------------------------


def _with_name(tree: Tree, place: _Declared, old: str, new: str) -> tuple[Verdict, int]:
    index = place.channel
    method = place.decl.name
    if index is None:
        return Leave(f"{method} takes no channel here"), 0
    param = place.decl.params[index]
    name = param.names[0].name if param.names else ""
    uses = _uses(tree, place, param)
    end = max((use.span.end for use in uses), default=0)
    if name == new:
        return Leave(f"the channel is called {new} already", done=True), end
    if name != old:
        return Leave("this declaration has a name of its own for the channel, which nobody else sees"), end
    if names_in(tree, place.path, place.decl.span, new):
        return Leave(f"{new} means something else here, and the name of a parameter is nobody else's concern"), end
    spans = (param.names[0].span, *(use.span for use in uses))
    return Rewrite(tuple(Edit(place.path, span, new.encode()) for span in spans)), end
