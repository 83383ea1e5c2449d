"""kubectl with a folder in the place of a cluster: $FAKE_CLUSTER/{cluster.json,objects/,polls}.

cluster.json has `namespaces`, `nodes`, `pods` (a list of lists: the pods at each question for them), `end` (the
condition of the Job once the last list was given) and `logs` (pod: file).
"""

import json
import os
import re
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
STATE = os.environ["FAKE_CLUSTER"]
KINDS = {"job": "Job", "service": "Service", "configmap": "ConfigMap", "secret": "Secret", "networkpolicy": "NetworkPolicy"}
KINDS.update({"serviceaccount": "ServiceAccount", "resourceclaimtemplate": "ResourceClaimTemplate"})


def render(folder):
    """Renders JSON, which is YAML too. Python starts without its packages (-S), and only this function needs them."""
    kept = os.path.join(os.environ["FAKE_RENDERINGS"], str(zlib.crc32(read(os.path.join(folder, "kustomization.yaml")).encode())))
    if not os.path.exists(kept):
        import site

        site.main()
        import kustomize

        text = "\n---\n".join(json.dumps(one, indent=1) for one in kustomize.render(folder))
        with open(f"{kept}.{os.getpid()}", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(f"{kept}.{os.getpid()}", kept)
    return read(kept)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def tokens(template):
    """Yields the texts, paths, ranges and ends of a jsonpath."""
    for text, braces in re.findall(r"([^{}]+)|\{([^}]*)\}", template):
        yield ("text", text) if text else ("brace", braces)


def find(node, path):
    for step in filter(None, path.split(".")):
        node = node.get(step.removesuffix("[*]")) if isinstance(node, dict) else None
        if step.endswith("[*]"):
            return node or []
    return node


def evaluate(items, node, out):
    """Consumes `items` up to their {end}."""
    while items:
        kind, value = items.pop(0)
        if kind == "text":
            out.append(value)
        elif value.startswith('"'):
            out.append(json.loads(value))
        elif value.startswith("range "):
            inner, rest = find(node, value[6:]), list(items)
            evaluate(items, {}, [])  # skips to the end
            for one in inner:
                evaluate(list(rest), one, out)
        elif value == "end":
            return
        else:
            got = find(node, value)
            out.append("" if got is None else got if isinstance(got, str) else json.dumps(got, separators=(",", ":")))


def jsonpath(template, node):
    out = []
    evaluate(list(tokens(template)), node, out)
    return "".join(out)


class Fake:
    def __init__(self, words):
        self.words, self.options = [], {}
        self.cluster = json.loads(read(os.path.join(STATE, "cluster.json")))
        self.objects = os.path.join(STATE, "objects")
        self.parse(words)

    def parse(self, words):
        words = list(words)
        while words:
            word = words.pop(0)
            if word in ("--namespace", "-o", "-l", "-f", "-p"):
                self.options[word] = words.pop(0)
            elif word.startswith("--"):
                name, _, value = word.partition("=")
                self.options[name] = value
            else:
                self.words.append(word)

    def path(self, kind, name):
        return os.path.join(self.objects, f"{kind}-{name}.json")

    def refuse(self, text):
        print(f"Error from server {text}", file=sys.stderr)
        return 1

    def selected(self, one):
        name, sign, value = re.fullmatch(r"(\w+)(!?=)(\w+)", self.options.get("-l", "part!=none")).groups()
        return (one["metadata"].get("labels", {}).get(name) == value) == (sign == "=")

    def store(self):
        result = 0
        for one in filter(self.selected, map(json.loads, sys.stdin.read().split("\n---\n"))):
            path = self.path(one["kind"], one["metadata"]["name"])
            if self.words[0] == "create" and (os.path.exists(path) or self.cluster.get("race")):
                result = self.refuse(f'(AlreadyExists): {one["kind"]} "{one["metadata"]["name"]}" already exists')
                continue
            with open(path, "w", encoding="utf-8") as file:
                json.dump(one, file)
        return result

    def delete(self):
        for kind in self.words[1].split(","):
            for name in os.listdir(self.objects):
                path = os.path.join(self.objects, name)
                if name.startswith(KINDS[kind] + "-") and self.selected(json.loads(read(path))):
                    os.remove(path)
        return 0

    def patch(self):
        path = self.path(KINDS[self.words[1]], self.words[2])
        one = json.loads(read(path))
        one["spec"].update(json.loads(self.options["-p"])["spec"])
        with open(path, "w", encoding="utf-8") as file:
            json.dump(one, file)
        return 0

    def polls(self):
        path = os.path.join(STATE, "polls")
        return int(read(path)) if os.path.exists(path) else 0

    def pods(self):
        """Each query of the pods' states advances them by one step."""
        steps, at = self.cluster["pods"], self.polls()
        job = self.path("Job", "viaduct-bench")
        if os.path.exists(job) and json.loads(read(job)).get("spec", {}).get("suspend"):
            return []
        if self.options["-o"] != "name":
            with open(os.path.join(STATE, "polls"), "w", encoding="ascii") as file:
                file.write(str(at + 1))
        now = steps[min(at, len(steps) - 1)]
        return [{"metadata": {"name": name}, "status": status} for name, status in now.items()]

    def get(self):
        kind = self.words[1]
        if kind == "nodes":
            if self.cluster["nodes"] is None:
                return self.refuse("(Forbidden): nodes is forbidden")
            one = {"items": self.cluster["nodes"]}
        elif kind == "pods":
            one = {"items": self.pods()}
            if self.options["-o"] == "name":
                print("\n".join("pod/" + pod["metadata"]["name"] for pod in one["items"]))
                return 0
        elif kind == "namespace":
            known = self.words[2] in self.cluster["namespaces"]
            return 0 if known else self.refuse(f'(NotFound): namespaces "{self.words[2]}" not found')
        else:
            path = self.path(KINDS[kind], self.words[2])
            if not os.path.exists(path):
                return self.refuse(f'(NotFound): {kind} "{self.words[2]}" not found')
            one = json.loads(read(path))
            if kind == "job" and self.polls() >= len(self.cluster["pods"]) and self.cluster["end"]:
                one["status"] = {"conditions": [{"type": self.cluster["end"], "status": "True"}]}
        if "-o" in self.options:
            print(jsonpath(self.options["-o"].removeprefix("jsonpath="), one), end="")
        return 0

    def logs(self):
        log = self.cluster["logs"].get(self.words[1])
        if log is None:
            return self.refuse("(BadRequest): the container is waiting to start")
        print(read(log), end="")
        return 0

    def run(self):
        verb = self.words[0]
        if verb == "kustomize":
            print(render(self.words[1]))
            return 0
        if self.options.get("--namespace", "bench") not in self.cluster["namespaces"]:
            return self.refuse("(NotFound): namespace not found")
        if verb in ("create", "apply"):
            return self.store()
        return {"get": self.get, "delete": self.delete, "logs": self.logs, "patch": self.patch}[verb]()


if __name__ == "__main__":
    sys.exit(Fake(sys.argv[1:]).run())
