"""The interface of the headers in include/viaduct for C++, as the promises that check_stability.py compares.

A struct or class is one line, so that a new member changes its line: a program compiled before would use another
layout. A function, an alias, a constant or a value of an enum is a line each.
"""
import json
import pathlib
import re
import shutil
import subprocess

COMPILER = "clang++-19"  # another version may spell a type in another way
FUNCTIONS = {"FunctionDecl", "CXXMethodDecl", "CXXConstructorDecl", "CXXDestructorDecl", "CXXConversionDecl"}
SCOPES = {"CXXRecordDecl", "NamespaceDecl"}
TEMPLATES = {"ClassTemplateDecl", "FunctionTemplateDecl"}
BLANKS = re.compile(r"\s*")
LAYOUT = re.compile(r"Record Layout\n +0 \| (?:struct|class) (viaduct::[\w:]+)(?: \(empty\))?\n.*?\[sizeof=(\d+)", re.S)


def is_readable():
    return shutil.which(COMPILER) is not None


def documents(text):
    """The JSON documents that stand one behind the other in the text."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        document, at = decoder.raw_decode(text, at)
        yield document
        at = BLANKS.match(text, at).end()


def read_headers(root, *flags):
    """Returns the compiler's output about all headers."""
    headers = sorted(path.name for path in (pathlib.Path(root) / "include/viaduct").glob("*.h"))
    source = "".join(f"#include <viaduct/{name}>\n" for name in headers)
    words = [COMPILER, "-std=c++20", "-Iinclude", "-fsyntax-only", *(word for flag in flags for word in ("-Xclang", flag)), "-x", "c++", "-"]
    done = subprocess.run(words, cwd=root, input=source, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"{COMPILER} cannot read include/viaduct:\n{done.stderr}")
    return done.stdout.strip()


def type_of(node):
    return node["type"]["qualType"]


def enum_lines(node, name):
    yield f"c++ enum {name} of {node.get('fixedUnderlyingType', {'qualType': 'int'})['qualType']}"
    value = -1
    for one in node.get("inner", []):
        if one["kind"] == "EnumConstantDecl":
            explicit = [part["value"] for part in one.get("inner", []) if "value" in part]
            value = int(explicit[0]) if explicit else value + 1
            yield f"c++ value {name}::{one['name']} = {value}"


def layout(node):
    """The bases, members and virtual functions of a record, which decide where its members lie."""
    bases = [base["type"]["qualType"] for base in node.get("bases", [])]
    members = [f"{type_of(one)} {one.get('name', '')}".rstrip() for one in node.get("inner", []) if one["kind"] == "FieldDecl"]
    virtual = [f"virtual {one['name']} {type_of(one)}" for one in node.get("inner", []) if one.get("virtual")]
    return "; ".join([*(f"base {base}" for base in bases), *members, *virtual])


def lines_of(node, scope, sizes):
    """The promises of a declaration and of those in it; scope has the names around it, each with "::"."""
    kind, name = node["kind"], scope + node.get("name", "")
    if node.get("isImplicit") or node.get("explicitlyDeleted"):
        return
    if kind in FUNCTIONS:
        yield f"c++ function {name} {type_of(node)}"
    elif kind == "VarDecl":
        yield f"c++ constant {name} {type_of(node)}"
    elif kind == "TypeAliasDecl":
        yield f"c++ alias {name} = {type_of(node)}"
    elif kind == "EnumDecl":
        yield from enum_lines(node, name)
    elif kind == "CXXRecordDecl" and "definitionData" in node:
        yield f"c++ struct {name} of {sizes.get(name, 'any')} bytes {{{layout(node)}}}"
    if kind in SCOPES | TEMPLATES:
        inside = f"{name}::" if kind in SCOPES else scope
        for one in node.get("inner", []):
            yield from lines_of(one, inside, sizes)


def cpp_interface(root):
    sizes = dict(LAYOUT.findall(read_headers(root, "-fdump-record-layouts-complete")))
    for node in documents(read_headers(root, "-ast-dump=json", "-ast-dump-filter=viaduct")):
        if node["kind"] == "NamespaceDecl":
            yield from lines_of(node, "", sizes)
