"""Tools folders as a fork might write them."""

from __future__ import annotations

from pathlib import Path

LEGACY_ARN = "arn:aws:states:eu-central-1:111122223333:stateMachine:Legacy"

FUNCTION_TASK = '''
from mcp_tasks import TaskContext, tool

@tool(
    name="count.words",
    task="optional",
    max_concurrency=2,
    memory_mb=1536,
    permissions=[{"actions": ["s3:GetObject"], "resources": ["arn:aws:s3:::texts/*"]}],
    secrets={"PRICES": "prices/key", "TOKEN": "/prices/token"},
    env={"PRICE_TABLE": "prices"},
)
def count_words(task: TaskContext, key: str) -> int:
    """Count the words of a text."""
    return 0

@tool(
    name="count_words",
    task="required",
    permissions=[{"actions": ["s3:PutObject"], "resources": ["arn:aws:s3:::counts/one"]}],
)
def count_words_of(text: str) -> int:
    """A name that differs from another in punctuation only."""
    return len(text.split())
'''

WITHIN_THE_REQUEST = '''
from mcp_tasks import tool

@tool(permissions=[{"actions": ["dynamodb:GetItem"], "resources": ["arn:aws:dynamodb:::table/x"]}])
def look_up(key: str) -> str:
    """Look something up."""
    return key
'''

ASKS_FIRST = '''
from pydantic import BaseModel

from mcp_tasks import TaskContext, tool

class Sure(BaseModel):
    sure: bool

def confirm(task: TaskContext, month: str) -> None:
    task.ask(f"Close {month}?", Sure)

@tool(
    task="required",
    ask_first=confirm,
    permissions=[{"actions": ["kms:Decrypt"], "resources": ["arn:aws:kms:::key/books"]}],
)
def close_books(month: str) -> str:
    """Close the books of a month."""
    return month
'''

NO_TOOLS = '''
from mcp_tasks import prompt, resource

@resource(
    "notes://{name}",
    permissions=[{"actions": ["s3:GetObject"], "resources": ["arn:aws:s3:::notes/*"]}],
)
def note(name: str) -> str:
    """A note."""
    return name

@resource("notes://all")
def notes() -> list[str]:
    """The notes' names."""
    return []

@prompt(
    permissions=[{"actions": ["ssm:GetParameter"], "resources": ["arn:aws:ssm:::parameter/style"]}]
)
def rewrite(text: str) -> str:
    """Rewrite a text in our style."""
    return text
'''

WORKFLOW = """
from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel

from mcp_tasks import workflow_tool

class Arguments(BaseModel):
    month: str

def render(month: str) -> str:
    return month

report = workflow_tool(
    "report",
    description="Make a report.",
    arguments=Arguments,
    definition=Path(__file__).with_name("workflow.asl.json"),
    steps=[render],
    state_permissions=[{"actions": ["sns:Publish"], "resources": ["arn:aws:sns:::reports"]}],
    ttl=timedelta(hours=3),
    timeout=timedelta(minutes=15),
)
"""

WORKFLOW_DEFINITION = """
{
  "QueryLanguage": "JSONata",
  "StartAt": "Render",
  "States": {
    "Render": {
      "Type": "Task",
      "Resource": "${worker}",
      "Arguments": {
        "task": "{% $states.context.Execution.Name %}",
        "step": "render",
        "input": "{% $states.input %}"
      },
      "End": true
    }
  }
}
"""

WRAPPED = f'''
from pydantic import BaseModel

from mcp_tasks import workflow_tool

class Arguments(BaseModel):
    order: str

legacy = workflow_tool(
    "legacy",
    description="Runs a state machine that was there before.",
    arguments=Arguments,
    state_machine_arn="{LEGACY_ARN}",
)
'''


WRAPPED_ARNS = [
    f"arn:aws:states:ap-southeast-1:111122223333:stateMachine:{n:02}-{'x' * 77}" for n in range(36)
]
"""As long as ARNs of state machines may be."""
WRAPPED_KEY = "arn:aws:kms:ap-southeast-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
MANY_WRAPPED = f'''
from pydantic import BaseModel

from mcp_tasks import workflow_tool

class Arguments(BaseModel):
    order: str

for number, arn in enumerate({WRAPPED_ARNS!r}):
    globals()[f"legacy_{{number:02}}"] = workflow_tool(
        f"legacy_{{number:02}}",
        description="Runs a state machine that was there before.",
        arguments=Arguments,
        state_machine_arn=arn,
        kms_key_arn="{WRAPPED_KEY}" if number < 2 else None,
    )
'''

SCOPES = '''
from mcp_tasks import tool

@tool(scopes=["books:close"])
def close_all() -> None:
    """Close all books."""
'''


GREEDY = '''
from mcp_tasks import {kind}

@{kind}({first}permissions={permissions})
def greedy(text: str) -> str:
    """Do something."""
    return text
'''
BAD_PERMISSIONS = {"tool": "greedy", "prompt": "greedy", "resource": "n://{text}"}
"""What declares a permission that is no policy statement, and its name."""


def _write_greedy(folder: Path) -> None:
    no_statement = [{"action": "s3:GetObject"}]
    for kind, name in BAD_PERMISSIONS.items():
        first = f'"{name}", ' if kind == "resource" else ""
        text = GREEDY.format(kind=kind, first=first, permissions=no_statement)
        (folder / f"bad {kind}").mkdir()
        (folder / f"bad {kind}" / "greedy.py").write_text(text)
    all_actions = [{"actions": ["s3:*"], "resources": ["arn:aws:s3:::texts/*"]}]
    (folder / "all actions").mkdir()
    (folder / "all actions" / "greedy.py").write_text(
        GREEDY.format(kind="tool", first="", permissions=all_actions)
    )


def write_fork(folder: Path) -> Path:
    """Write tools folders: `fork`, with nearly all that there is, `no tasks`, `scopes`, `wrapped`,
    which wraps 36 state machines, and those whose permissions are refused.
    """
    (folder / "fork" / "report").mkdir(parents=True)
    (folder / "fork" / "count.py").write_text(FUNCTION_TASK)
    (folder / "fork" / "look_up.py").write_text(WITHIN_THE_REQUEST)
    (folder / "fork" / "close_books.py").write_text(ASKS_FIRST)
    (folder / "fork" / "notes.py").write_text(NO_TOOLS)
    (folder / "fork" / "legacy.py").write_text(WRAPPED)
    (folder / "fork" / "_private.py").write_text("raise RuntimeError('nobody imports this')")
    (folder / "fork" / "report" / "__init__.py").write_text(WORKFLOW)
    (folder / "fork" / "report" / "workflow.asl.json").write_text(WORKFLOW_DEFINITION)
    (folder / "no tasks").mkdir()
    (folder / "no tasks" / "look_up.py").write_text(WITHIN_THE_REQUEST)
    (folder / "wrapped").mkdir()
    (folder / "wrapped" / "legacy.py").write_text(MANY_WRAPPED)
    (folder / "scopes").mkdir()
    (folder / "scopes" / "close_all.py").write_text(SCOPES)
    _write_greedy(folder)
    return folder
