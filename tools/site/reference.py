"""Makes pages of reST from the public headers and from the Python package.

A header is read as it is written: a comment explains the functions below it up to the next blank line or
comment, or the one field below it. A comment behind a declaration explains that one. Private members,
internal namespaces, copies and moves are left out. The Python package gives the texts of help(), and its
stub gives the types.
"""
import ast
import dataclasses
import re
import textwrap

INTERNAL_MACROS = {"VIADUCT_CAT", "VIADUCT_CAT_2", "VIADUCT_TRY_2", "VIADUCT_C_API", "VIADUCT_C_H"}
INTERNAL = re.compile(r"\b(agent|core|kv|detail)::")
CXX_ONLY = re.compile(r"^#ifdef __cplusplus\n.*?^#(?:else|endif)[^\n]*\n", re.M | re.S)
NEXT = re.compile(
    r"(?P<blank>\n[ \t]*(?=\n))|(?P<space>\s+)|(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<macro>\#define (?:\\\n|[^\n])*)|(?P<directive>\#[^\n]*)|(?P<access>(?:public|private):)"
    r"|(?P<close>\})|(?P<open>extern \"C\" \{|namespace viaduct \{)|(?P<inner>namespace \w+ \{)"
    r"|(?P<scope>(?:template <[^\n]*>\s*)?(?:typedef )?(?:class|struct|enum class|enum)\b[^;{(]*\{)",
    re.S,
)


@dataclasses.dataclass
class Entity:
    """One declaration, or several under one comment."""
    kind: str
    signatures: list
    comment: str
    members: list = dataclasses.field(default_factory=list)

    def name(self):
        return name_of(self.kind, self.signatures[0])


def name_of(kind, signature):
    if kind in ("function", "macro"):
        found = re.search(r"(operator\s*\W+?|operator \w+|~?\w+)\s*\(|(\w+)\s*$", signature)
        return (found[1] or found[2]).strip()
    if pointer := re.search(r"\(\*(\w+)\)", signature):
        return pointer[1]
    start = re.sub(r"^template <.*?>\s(?!=)", "", signature)
    start = re.split(r"\s[:=]\s|[{\[]", start)[0]
    return re.findall(r"\w+", start)[-1]


def end_of_braces(text, at):
    """The position behind the brace that closes the one at `at`."""
    depth = 0
    for brace in re.compile(r"//[^\n]*|'.'|\"(?:\\.|[^\"])*\"|[{}]").finditer(text, at):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if brace[0] == "}" and depth == 0:
            return brace.end()
    raise ValueError(f"a brace stays open: {text[at:at + 60]!r}")


def split(text, separator):
    """The parts of a text between separators that stand in no brackets."""
    parts, depth, begin = [], 0, 0
    for number, char in enumerate(text):
        depth += (char in "([{<") - (char in ")]}>")
        if char == separator and depth == 0:
            parts.append(text[begin:number])
            begin = number + 1
    return parts + [text[begin:]]


class Header:
    """The introduction and the entities of a header. `domain` is "cpp" or "c"."""

    def __init__(self, path):
        text = path.read_text()
        self.name = path.name
        self.domain = "c" if path.name == "c.h" else "cpp"
        if self.domain == "c":
            text = re.sub(r"(?<!#define )VIADUCT_C_API\s+", "", CXX_ONLY.sub("", text))
        opening = re.match(r"(?://[^\n]*\n)+|/\*.*?\*/\n", text, re.S)
        self.introduction = plain(opening[0])
        self.text, self.at = text, opening.end()
        self.entities = self.scope("")

    def scope(self, owner):
        """Reads up to the brace that closes the scope of `owner`, a class or enum or nothing."""
        found, comment, shared, public = [], "", None, True
        while match := NEXT.match(self.text, self.at) or self.declaration():
            begin, kind = self.at, match.lastgroup if isinstance(match, re.Match) else None
            if kind is None:
                shared = self.add(found, match, owner, comment, shared, public)
                comment = ""
                continue
            self.at = match.end()
            if kind == "blank":
                if comment and not owner and comment.startswith("----"):
                    found.append(Entity("part", [comment.strip("- ")], ""))
                comment, shared = "", None
            elif kind == "comment":
                block = self.whole_comment(begin)
                if self.text.rfind("\n", 0, begin) < self.text.rfind(";", 0, begin) and shared:
                    self.trailing(found, plain(block))
                    shared = None
                elif not plain(block).startswith(("NOLINT", "IWYU")):
                    comment, shared = plain(block), None
            elif kind == "macro":
                name = re.match(r"#define (\w+(?:\([^)]*\))?)", match["macro"])[1]
                if name.split("(")[0] not in INTERNAL_MACROS:
                    shared = self.add(found, Entity("macro", [name], ""), owner, comment, shared, True)
                    comment = ""
            elif kind == "access":
                public, comment, shared = match[0] == "public:", "", None
            elif kind == "inner":
                self.at = end_of_braces(self.text, match.end() - 1)
            elif kind == "scope":
                shared = self.add(found, self.type_of(match[0]), owner, comment, None, public)
                comment = ""
            elif kind == "close" and owner:
                break
        return found

    def whole_comment(self, begin):
        """The comment at `begin` with the lines below it that begin in the same column."""
        column = begin - self.text.rfind("\n", 0, begin) - 1
        while more := re.compile(r"\n( *)(//[^\n]*)").match(self.text, self.at):
            if len(more[1]) != column or more[2].startswith("// NOLINT"):
                break
            self.at = more.end()
        return self.text[begin:self.at]

    def trailing(self, found, comment):
        """Gives the last declaration the comment behind it."""
        last = found[-1]
        if self.shares:
            found.append(Entity(last.kind, [last.signatures.pop()], comment))
        else:
            last.comment = " ".join(filter(None, [last.comment, comment]))

    def add(self, found, entity, owner, comment, shared, public):
        """Adds an entity. Without a comment of its own, it shares that of the entity above it."""
        if not public or not entity.signatures or is_internal(entity, owner):
            return None
        self.shares = bool(
            shared and shared.comment and not comment and shared.kind == entity.kind in ("function", "macro")
        )
        if self.shares:
            shared.signatures += entity.signatures
            return shared
        entity.comment = comment
        found.append(entity)
        return entity

    def type_of(self, opening):
        """Reads the class, struct or enum whose opening has just been read."""
        head = re.sub(r"\[\[\w+\]\] ", "", " ".join(opening.rstrip("{").split()))
        kind = re.search(r"\b(enum class|class|struct|enum)\b", head)[1]
        name = re.sub(rf"^(template <.*>) {kind}|^(typedef )?{kind}", r"\1", head).strip()
        inner = re.sub(r"<.*", "", name.split(" : ")[0].split(" ")[-1])
        members = self.enumerators() if kind.startswith("enum") else self.scope(inner or "?")
        self.at = self.text.index(";", self.at) + 1
        if not name and members:
            return Entity("enumerators", [members[0].signatures[0]], "", members)
        return Entity(kind.replace(" ", "-"), [name], "", members)

    def enumerators(self):
        found, comment = [], ""
        item = re.compile(r"\s*(?:(//[^\n]*|/\*.*?\*/)|(\w+)(?:\s*=\s*(\w+))?\s*,?|(\}))", re.S)
        while not (match := item.match(self.text, self.at))[4]:
            begin, self.at = match.start(match.lastindex), match.end()
            if match[2]:
                found.append(Entity("enumerator", [match[2]], comment))
                comment = ""
            elif self.text[self.text.rfind("\n", 0, begin):begin].strip():
                found[-1].comment = plain(self.whole_comment(begin))
            else:
                comment = plain(self.whole_comment(begin))
        self.at = match.end()
        return found

    def declaration(self):
        """Reads one declaration, without the body of a function. Nothing: the header ends here."""
        text, at, depth = self.text, self.at, 0
        if at >= len(text):
            return None
        while not (depth == 0 and text[at] in ";{"):
            depth += (text[at] in "(") - (text[at] in ")")
            at += 1
        head = " ".join(text[self.at:at].split())
        initial = re.search(r"(?<!operator)(?<![=<>!])=(?!=)", re.sub(r"\([^()]*(\([^()]*\)[^()]*)*\)", "", head))
        is_function = "(" in head and not initial and "(*" not in head
        if text[at] == "{":
            at = end_of_braces(text, at)
            if not is_function:
                while text[at] != ";":
                    at = end_of_braces(text, at) if text[at] == "{" else at + 1
        whole = " ".join(text[self.at:at].split())
        self.at = at + 1 if at < len(text) and text[at] == ";" else at
        return entity_of(head if is_function else whole, is_function)


def is_internal(entity, owner):
    """Whether a declaration names an internal type, or makes a default, a copy or a move."""
    signature = entity.signatures[0]
    usual = owner and re.match(rf"{owner}\(((const )?{owner}&+)?\)", signature)
    return bool(INTERNAL.search(signature) or usual or "operator=(" in signature)


def entity_of(text, is_function):
    """The entity that a declaration without its body makes. It may be none that the page shows."""
    text = re.sub(r"\[\[[^\]]*\]\] ", "", text)
    if re.match(r"(friend|static_assert|using \w+::|class \w+$|struct \w+$)", text):
        return Entity("none", [], "")
    if text.endswith("= delete"):
        return Entity("none", [], "")
    if re.match(r"(using|typedef) ", text):
        return Entity("type", [re.sub(r"^using |^typedef .*\b(?=\w+$)", "", text)], "")
    if "concept " in text:
        return Entity("concept", [re.sub(r"concept (\w+) = .*", r"\1", text)], "")
    if is_function or text.endswith(") = default"):
        return Entity("function", [text.split(") : ")[0] + ")" if ") : " in text else text], "")
    first, *others = split(text, ",")
    first = re.sub(r"\s*= (\{\}|\[.*)$", "", first) if " = " in first else first.split("{")[0]
    kept = [first]
    if others:
        base = re.match(r"(.*[\w>*&] )\w+", first.split(" = ")[0])[1]
        kept += [base + re.sub(r"\s*= \{\}$", "", other.strip()) for other in others]
    return Entity("member", kept, "")


def plain(comment):
    """The text of a comment, with its line breaks and indentation."""
    if comment.startswith("/*"):
        lines = comment[2:].rstrip().removesuffix("*/").rstrip().split("\n")
        return "\n".join([lines[0].strip(), *(line.removeprefix("   ") for line in lines[1:])]).strip()
    return "\n".join(line.strip().removeprefix("//").removeprefix(" ") for line in comment.split("\n")).strip()


class Words:
    """Turns comments into reST, with links to the names and pages that they mention."""

    TOKEN = re.compile(
        r"`(?P<code>[^`]+)`|(?P<page>docs/[\w/-]+\.md)|(?P<group>\bVIADUCT_\*)"
        r"|(?P<name>\b(?:\w+(?:::|\.))*\w+(?:\(\))?)|(?P<special>[*|\\`])"
    )

    def __init__(self, names, pages, domain):
        self.names, self.pages, self.domain = names, pages, domain
        self.short = {}
        for name in names:
            self.short.setdefault(name.split("::")[-1].split(".")[-1], []).append(name)

    def target(self, word, owner):
        """The full name behind a word of a comment, if it is certain."""
        for full in (f"{owner}::{word}", f"{owner}.{word}", word):
            if full in self.names:
                return full
        found = self.short.get(word, [])
        return found[0] if len(found) == 1 else None

    def rst(self, comment, owner=""):
        def token(match):
            if match["page"]:
                return f":doc:`/{match['page'][:-3]}`" if match["page"] in self.pages else f"``{match[0]}``"
            if match["special"]:
                return "\\" + match[0]
            word = match["code"] or match["group"] or match["name"]
            is_name = re.fullmatch(r".*::.*|[\w.]+\(\)|(k[A-Z]|viaduct_|VIADUCT_)\w*", word)
            full = is_name and self.target(word.removesuffix("()"), owner)
            if full:
                return f"\\ :{self.domain}:`{word} <{full}>`\\ "
            if is_name or not match["name"]:
                return f"``{word}``" + "\\ "
            return word.rstrip("_") + "\\_" if word.endswith("_") else word

        parts = []
        for is_code, text in blocks_of(comment):
            if is_code:
                parts.append("::\n\n" + indent(textwrap.dedent(text), 2))
            else:
                parts.append(self.TOKEN.sub(token, " ".join(text.split())))
        return "\n\n".join(parts)


def blocks_of(comment):
    """The paragraphs of a comment, and the blocks of code between them, which are indented."""
    found = []
    for line in comment.split("\n"):
        is_code = line.startswith("  ")
        if not line.strip():
            found.append((None, ""))
        elif is_code and len(found) > 1 and found[-1][0] is None and found[-2][0]:
            found[-2:] = [(True, f"{found[-2][1]}\n\n{line}")]
        elif found and found[-1][0] == is_code:
            found[-1] = (is_code, f"{found[-1][1]}\n{line}")
        else:
            found.append((is_code, line))
    return [block for block in found if block[0] is not None]


def title(text, line):
    return f"{text}\n{line * len(text)}\n\n"


def indent(text, by):
    return "\n".join(" " * by + line if line else "" for line in text.split("\n"))


def names_of(headers):
    """The full names of all entities of the headers, without their namespace."""
    def walk(entities, owner, join):
        for one in entities:
            if one.kind == "enumerators":
                yield from walk(one.members, owner, join)
            elif one.kind != "part":
                for signature in one.signatures:
                    yield (owner + join if owner else "") + name_of(one.kind, signature)
                yield from walk(one.members, (owner + join if owner else "") + one.name(), join)

    return {name for header in headers for name in walk(header.entities, "", "." if header.domain == "c" else "::")}


def directive(header, one, words, owner=""):
    """The reST of an entity and its members."""
    if one.kind == "enumerators":
        inner = "".join(directive(header, member, words) for member in one.members)
        return (words.rst(one.comment) + "\n\n" if one.comment else "") + inner
    domain = "c" if one.kind == "macro" else header.domain
    lead = f".. {domain}:{one.kind}:: "
    text = lead + ("\n" + " " * len(lead)).join(one.signatures) + "\n"
    full = f"{owner}::{one.name()}" if owner else one.name()
    if one.comment:
        text += "\n" + indent(words.rst(one.comment, full if one.members else owner), 3) + "\n"
    for member in one.members:
        text += "\n" + indent(directive(header, member, words, full), 3)
    return text + "\n"


def header_page(header, words):
    text = title(header.name if header.domain == "cpp" else f"C: {header.name}", "=") + f"``#include <viaduct/{header.name}>``\n\n"
    text += words.rst(header.introduction) + "\n\n"
    if header.domain == "cpp":
        text += ".. cpp:namespace:: viaduct\n\n"
    for one in header.entities:
        if one.kind == "part":
            text += title(one.signatures[0], "-")
            continue
        if one.members and header.domain == "cpp":
            text += title(one.name(), "-")
        text += directive(header, one, words) + "\n"
    return text


# ---- Python ----


def signature_of(call):
    """The arguments and the result of a function, without `self`."""
    arguments = re.sub(r"^self(, /)?(, )?", "", ast.unparse(call.args))
    result = f" -> {ast.unparse(call.returns)}" if call.returns and call.name != "__init__" else ""
    return f"({arguments}){result}"


def docstring(thing):
    """The docstring of an object of the compiled module, without the arguments that precede it."""
    return re.sub(r"^\w+\(.*?\)(?: -> [^\n]*)?\n\n", "", (thing.__doc__ or "").strip() + "\n\n", flags=re.S).strip()


class Package:
    """The objects that the Python package exports, and their types from the stub."""

    def __init__(self, module, folder):
        self.module, self.folder = module, folder
        trees = [ast.parse((folder / name).read_text()) for name in ("_core.pyi", "_errors.py", "_asyncio.py")]
        self.stub = trees[0]
        self.nodes = {
            node.name: node for tree in trees for node in tree.body if getattr(node, "name", "") in module.__all__
        }
        self.names = set(self.nodes)
        for name, node in self.nodes.items():
            if isinstance(node, ast.ClassDef):
                self.names |= {f"{name}.{member.name}" for member in members_of(node)}


def members_of(node):
    """The public members of a class of the stub: functions, and attributes as functions without arguments."""
    for one in node.body:
        if isinstance(one, ast.AnnAssign):
            final = re.sub(r"^Final\[(.*)\]$", r"\1", ast.unparse(one.annotation))
            one = ast.parse(f"@property\ndef {one.target.id}(self) -> {final}: ...").body[0]
        if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) and not one.name.startswith("_"):
            yield one


def python_class(package, node, words):
    own = getattr(package.module, node.name)
    init = next((one for one in node.body if getattr(one, "name", "") == "__init__"), None)
    is_error = issubclass(own, Exception)
    signature = signature_of(init) if init and not is_error else ""
    text = title(node.name, "-") + f".. py:class:: {node.name}{signature}\n\n"
    text += indent(words.rst(docstring(own), node.name), 3) + "\n\n"
    for member in members_of(node):
        marks = {ast.unparse(mark) for mark in member.decorator_list}
        if "property" in marks:
            text += f"   .. py:property:: {member.name}\n      :type: {ast.unparse(member.returns)}\n\n"
        else:
            kind = "staticmethod" if "staticmethod" in marks else "method"
            text += f"   .. py:{kind}:: {member.name}{signature_of(member)}\n\n"
        text += indent(words.rst(docstring(getattr(own, member.name)), node.name), 6) + "\n\n"
    return text


def aliases(package):
    """The names for types that only signatures have, each with its comment in the stub."""
    source = (package.folder / "_core.pyi").read_text().split("\n")
    for node in package.stub.body:
        if isinstance(node, ast.Assign):
            above = node.lineno - 1
            while source[above - 1].startswith("# "):
                above -= 1
            comment = " ".join(line[2:] for line in source[above:node.lineno - 1])
            yield ast.unparse(node.targets[0]), ast.unparse(node.value), comment


def python_page(package, words):
    text = title("Python: viaduct", "=") + ".. py:module:: viaduct\n\n"
    text += words.rst(package.module.__doc__.strip()) + "\n\n"
    functions = ""
    for name, node in package.nodes.items():
        if isinstance(node, ast.ClassDef):
            text += python_class(package, node, words)
        else:
            asynchronous = "   :async:\n" if isinstance(node, ast.AsyncFunctionDef) else ""
            functions += f".. py:function:: {name}{signature_of(node)}\n{asynchronous}\n"
            functions += indent(words.rst(docstring(getattr(package.module, name))), 3) + "\n\n"
    text += title("Functions", "-") + functions + title("Types in signatures", "-")
    for name, value, comment in aliases(package):
        text += f".. py:data:: {name}\n   :value: {value}\n\n" + indent(words.rst(comment), 3) + "\n\n"
    return text
