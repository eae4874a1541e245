"""json_schema - a validator for the part of JSON Schema (draft-07) that the
project's schemas use.

    load(PATH) -> Schema             a schema file
    Schema(dict, base=None)
        .check(VALUE) -> [fault]     empty: valid. A fault is "PATH: what",
                                     PATH like $.fs.read[0]
        .valid(VALUE) -> bool
        .at("#/definitions/x")       the schema below a pointer, as a Schema
    loads(TEXT) -> VALUE             JSON with two equal keys refused

A keyword that is not known here is an error when the schema is made, not when
a value is checked: nothing in a schema is ignored. Numbers: 1.0 is an integer,
true is none. Lengths count characters. Patterns are Python's, unanchored.
"""
import json
import os
import re

NOTES = {"$schema", "$id", "$comment", "title", "description", "default",
         "examples", "definitions"}
TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "number": lambda v: isinstance(v, (int, float)) and
    not isinstance(v, bool),
    "integer": lambda v: not isinstance(v, bool) and (
        isinstance(v, int) or (isinstance(v, float) and v.is_integer())),
}


class SchemaError(Exception):
    pass


def same(a, b):
    """Equal as JSON: true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return type(a) in (int, float) and type(b) in (int, float) and a == b or \
        type(a) is type(b) and a == b


def show(v):
    s = json.dumps(v, ensure_ascii=True)
    return s if len(s) < 80 else s[:77] + "..."


class Schema:
    def __init__(self, schema, root=None):
        self.schema = schema
        self.root = schema if root is None else root
        if root is None:
            self._inspect(schema, "#")

    # Is every keyword one that is checked?
    def _inspect(self, s, where):
        if isinstance(s, bool):
            return
        if not isinstance(s, dict):
            raise SchemaError("%s: a schema is an object" % where)
        for k, v in s.items():
            at = "%s/%s" % (where, k)
            if k == "definitions" or k in ("properties", "patternProperties"):
                for n, sub in v.items():
                    self._inspect(sub, "%s/%s" % (at, n))
            elif k in ("allOf", "anyOf", "oneOf"):
                for i, sub in enumerate(v):
                    self._inspect(sub, "%s/%d" % (at, i))
            elif k == "items" and isinstance(v, list):
                for i, sub in enumerate(v):
                    self._inspect(sub, "%s/%d" % (at, i))
            elif k in ("items", "additionalItems", "additionalProperties",
                       "propertyNames", "contains", "not", "if", "then",
                       "else"):
                self._inspect(v, at)
            elif k == "type":
                for t in v if isinstance(v, list) else [v]:
                    if t not in TYPES:
                        raise SchemaError("%s: no such type: %r" % (at, t))
            elif k == "pattern":
                re.compile(v)
            elif k == "$ref":
                self._pointed(v)
            elif k not in NOTES and not hasattr(self, "_" + k):
                raise SchemaError("%s: keyword not known here" % at)

    def _pointed(self, ref):
        if not ref.startswith("#"):
            raise SchemaError("%s: only references into the file" % ref)
        at = self.root
        for part in ref[1:].split("/")[1:]:
            part = part.replace("~1", "/").replace("~0", "~")
            try:
                at = at[int(part)] if isinstance(at, list) else at[part]
            except (KeyError, ValueError, IndexError):
                raise SchemaError("%s: leads nowhere" % ref) from None
        return at

    def at(self, ref):
        return Schema(self._pointed(ref), self.root)

    def valid(self, value):
        return not self.check(value)

    def check(self, value, path="$"):
        return list(self._check(self.schema, value, path))

    def _ok(self, s, value):
        return next(iter(self._check(s, value, "")), None) is None

    def _check(self, s, value, path):
        if s is True:
            return
        if s is False:
            yield "%s: nothing is allowed here" % path
            return
        if "$ref" in s:  # draft-07: what stands beside it does not count
            yield from self._check(self._pointed(s["$ref"]), value, path)
            return
        for k, v in s.items():
            if k in NOTES or k in ("then", "else", "additionalItems"):
                continue
            yield from getattr(self, "_" + k)(v, value, path, s)

    # Keywords

    def _type(self, want, value, path, s):
        want = want if isinstance(want, list) else [want]
        if not any(TYPES[t](value) for t in want):
            yield "%s: %s is not of type %s" % (path, show(value),
                                                " or ".join(want))

    def _enum(self, values, value, path, s):
        if not any(same(value, v) for v in values):
            yield "%s: %s is none of %s" % (path, show(value), show(values))

    def _const(self, want, value, path, s):
        if not same(value, want):
            yield "%s: %s is not %s" % (path, show(value), show(want))

    def _minimum(self, n, value, path, s):
        if TYPES["number"](value) and value < n:
            yield "%s: %s is less than %s" % (path, value, n)

    def _maximum(self, n, value, path, s):
        if TYPES["number"](value) and value > n:
            yield "%s: %s is more than %s" % (path, value, n)

    def _minLength(self, n, value, path, s):
        if isinstance(value, str) and len(value) < n:
            yield "%s: shorter than %d" % (path, n)

    def _maxLength(self, n, value, path, s):
        if isinstance(value, str) and len(value) > n:
            yield "%s: longer than %d" % (path, n)

    def _pattern(self, pattern, value, path, s):
        if isinstance(value, str) and not re.search(pattern, value):
            yield "%s: %s does not match %s" % (path, show(value), pattern)

    def _minItems(self, n, value, path, s):
        if isinstance(value, list) and len(value) < n:
            yield "%s: fewer than %d items" % (path, n)

    def _maxItems(self, n, value, path, s):
        if isinstance(value, list) and len(value) > n:
            yield "%s: more than %d items" % (path, n)

    def _uniqueItems(self, on, value, path, s):
        if on and isinstance(value, list):
            for i, v in enumerate(value):
                if any(same(v, w) for w in value[:i]):
                    yield "%s[%d]: stands there twice" % (path, i)

    def _items(self, items, value, path, s):
        if not isinstance(value, list):
            return
        for i, v in enumerate(value):
            sub = items if not isinstance(items, list) else \
                items[i] if i < len(items) else s.get("additionalItems", True)
            yield from self._check(sub, v, "%s[%d]" % (path, i))

    def _contains(self, sub, value, path, s):
        if isinstance(value, list) and not any(self._ok(sub, v)
                                               for v in value):
            yield "%s: no item is as one must be" % path

    def _required(self, names, value, path, s):
        if isinstance(value, dict):
            for n in names:
                if n not in value:
                    yield "%s: %s is missing" % (path, show(n))

    def _minProperties(self, n, value, path, s):
        if isinstance(value, dict) and len(value) < n:
            yield "%s: fewer than %d members" % (path, n)

    def _maxProperties(self, n, value, path, s):
        if isinstance(value, dict) and len(value) > n:
            yield "%s: more than %d members" % (path, n)

    def _properties(self, props, value, path, s):
        if isinstance(value, dict):
            for n, sub in props.items():
                if n in value:
                    yield from self._check(sub, value[n],
                                           "%s.%s" % (path, n))

    def _patternProperties(self, props, value, path, s):
        if isinstance(value, dict):
            for p, sub in props.items():
                for n in value:
                    if re.search(p, n):
                        yield from self._check(sub, value[n],
                                               "%s.%s" % (path, n))

    def _additionalProperties(self, sub, value, path, s):
        if not isinstance(value, dict):
            return
        for n in value:
            if n in s.get("properties", {}) or any(
                    re.search(p, n) for p in s.get("patternProperties", {})):
                continue
            if sub is False:
                yield "%s: unknown member %s" % (path, show(n))
            else:
                yield from self._check(sub, value[n], "%s.%s" % (path, n))

    def _propertyNames(self, sub, value, path, s):
        if isinstance(value, dict):
            for n in value:
                for fault in self._check(sub, n, path):
                    yield "%s (name of a member)" % fault

    def _allOf(self, subs, value, path, s):
        for sub in subs:
            yield from self._check(sub, value, path)

    def _anyOf(self, subs, value, path, s):
        if not any(self._ok(sub, value) for sub in subs):
            why = [f for sub in subs for f in self._check(sub, value, path)]
            yield "%s: none of several fits: %s" % (path, "; ".join(why))

    def _oneOf(self, subs, value, path, s):
        n = sum(self._ok(sub, value) for sub in subs)
        if n != 1:
            why = [f for sub in subs for f in self._check(sub, value, path)]
            yield "%s: %d of several fit, not one%s" % (
                path, n, ": " + "; ".join(why) if not n else "")

    def _not(self, sub, value, path, s):
        if self._ok(sub, value):
            yield "%s: is what it must not be" % path

    def _if(self, sub, value, path, s):
        which = "then" if self._ok(sub, value) else "else"
        yield from self._check(s.get(which, True), value, path)


def loads(text):
    def pairs(items):
        d = {}
        for k, v in items:
            if k in d:
                raise ValueError("key %r stands there twice" % k)
            d[k] = v
        return d
    return json.loads(text, object_pairs_hook=pairs)


def load(path):
    with open(path, encoding="utf-8") as f:
        return Schema(loads(f.read()))
