"""The READMEs are held to the code: commands, functions, messages and state diagrams.

Places that are compared are marked in the text:
    <!-- functions --> a list or table, a function's name first in each row <!-- /functions -->
    <!-- states:order --> (also reservation, payment) made by infra.diagrams <!-- /states -->
"""

import re

import pytest

from infra import diagrams
from infra.local.paths import ROOT
from lockstep.messaging.contracts import QUEUE_OF
from tests.proof.sections import BY_NAME
from tests.support import template

BOTH = pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def code(markdown: str) -> list[str]:
    """Lines of fenced blocks, without comments, and code spans."""
    *prose, last = re.split(r"^```.*$", markdown, flags=re.MULTILINE)
    fenced = [re.sub(r"#.*", "", line) for block in prose[1::2] for line in block.splitlines()]
    return fenced + re.findall(r"`([^`\n]+)`", "\n".join([*prose[::2], last]))


def commands(markdown: str) -> set[str]:
    """The targets that the text tells a reader to make."""
    return {
        target
        for part in code(markdown)
        for target in re.findall(r"\bmake(?: -\w+)* ([a-z][a-z-]*)", part)
    }


def listed_functions(markdown: str) -> list[str]:
    [marked] = re.findall(r"<!-- functions -->\n(.*?)<!-- /functions -->", markdown, re.DOTALL)
    return re.findall(r"^[-*|][^`\n]*`(?:functions/)?(\w+)(?:\.py)?`", marked, re.MULTILINE)


@BOTH
def test_its_commands_exist(name):
    targets = set(re.findall(r"^([a-z][\w-]*):", text("Makefile"), re.MULTILINE))
    assert commands(text(name))
    assert commands(text(name)) - targets == set()


@BOTH
def test_its_list_of_functions_is_the_folder_and_the_template(name):
    files = sorted(path.stem for path in (ROOT / "functions").glob("*.py"))
    assert sorted(listed_functions(text(name))) == files
    assert sorted(template.functions()) == files


@BOTH
def test_its_table_has_every_section_of_the_proof(name):
    [marked] = re.findall(r"<!-- proof -->\n(.*?)<!-- /proof -->", text(name), re.DOTALL)
    assert re.findall(r"^\| (\w+) \|", marked, re.MULTILINE)[1:] == list(BY_NAME)


@BOTH
def test_it_names_every_message_and_every_queue(name):
    for command, queue in QUEUE_OF.items():
        assert command.__name__ in text(name)
        assert f"{queue}.fifo" in text(name)


def test_its_state_diagrams_are_what_the_code_decides_by():
    diagrams.main(["--check"])


def test_a_diagram_that_drifted_fails_the_check(tmp_path, monkeypatch):
    readme = tmp_path / "README.md"
    monkeypatch.setattr(diagrams, "READMES", (readme,))
    empty = "".join(f"<!-- states:{name} -->\n<!-- /states -->\n" for name in diagrams.TABLES)
    readme.write_text(f"before\n{empty}after\n")
    with pytest.raises(SystemExit, match=r"run `python -m infra.diagrams`\): README\.md"):
        diagrams.main(["--check"])
    diagrams.main([])
    diagrams.main(["--check"])
    written = readme.read_text()
    assert written.startswith("before\n")
    assert written.endswith("after\n")
    assert "    PENDING_PAYMENT --> PAID\n" in written
    readme.write_text(written.replace("    PENDING_PAYMENT --> PAID\n", ""))
    with pytest.raises(SystemExit, match=r"README\.md"):
        diagrams.main(["--check"])


def test_a_diagram_without_a_place_fails_the_check(tmp_path, monkeypatch):
    (tmp_path / "README.md").write_text("<!-- states:order -->\n<!-- /states -->\n")
    monkeypatch.setattr(diagrams, "READMES", (tmp_path / "README.md",))
    with pytest.raises(SystemExit, match="reservation"):
        diagrams.main([])


def test_a_diagram_has_every_edge_once():
    for table in diagrams.TABLES.values():
        lines = diagrams.diagram(table).splitlines()
        edges = sum(len(targets) for targets in table.values())
        ends = sum(not targets for targets in table.values())
        assert len(lines) == len(set(lines)) == 1 + edges + ends


MARKDOWN = """
make sure that
```sh
make demo        # make it
make -s token member=42
```
and `make up TTL=60`, not make down
<!-- functions -->
| Function | Does |
|---|---|
| `a_b` | `c` |
- `functions/d.py`: `e`
<!-- /functions -->
"""


def test_commands_and_functions_are_found_where_they_stand_and_nowhere_else():
    assert commands(MARKDOWN) == {"demo", "token", "up"}
    assert listed_functions(MARKDOWN) == ["a_b", "d"]
