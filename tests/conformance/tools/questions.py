"""What the conformance suite's `input-required-result-*` scenarios expect to be asked."""

from __future__ import annotations

from pydantic import BaseModel

from mcp_tasks import AskForm, AskModel, AskRoots, TaskContext, prompt, tool


class Name(BaseModel):
    """A name."""

    name: str


class Color(BaseModel):
    """A colour."""

    color: str


class Ok(BaseModel):
    """A yes or a no."""

    ok: bool


class Context(BaseModel):
    """Some context."""

    context: str


@tool
def test_input_required_result_elicitation(task: TaskContext) -> str:
    """Ask for a name."""
    return f"Hello, {task.ask('What is your name?', Name, key='user_name').name}!"


@tool
def test_streaming_elicitation(task: TaskContext) -> str:
    """Ask for a name, in a result and never in a request of its own."""
    return f"Hello, {task.ask('What is your name?', Name, key='user_name').name}!"


@tool
def test_input_required_result_sampling(task: TaskContext) -> str:
    """Ask the client's model."""
    completion = task.ask_model(
        "What is the capital of France?", max_tokens=100, key="capital_question"
    )
    return f"The model says: {completion.text}"


@tool
def test_missing_capability(task: TaskContext) -> str:
    """Need sampling."""
    return task.ask_model("Say something", max_tokens=10).text


@tool
def test_input_required_result_list_roots(task: TaskContext) -> str:
    """Ask for the client's roots."""
    roots = task.ask_roots(key="client_roots")
    return f"The roots: {', '.join(root.uri for root in roots)}"


@tool
def test_input_required_result_request_state(task: TaskContext) -> str:
    """Ask, with a state that the client gives back."""
    confirmed = task.ask("Please confirm", Ok, key="confirm").ok
    return f"state-ok, confirmed: {confirmed}"


@tool
def test_input_required_result_tampered_state(task: TaskContext) -> str:
    """Ask, with a state that cannot be changed."""
    confirmed = task.ask("Please confirm", Ok, key="confirm").ok
    return f"confirmed: {confirmed}"


@tool
def test_input_required_result_multiple_inputs(task: TaskContext) -> str:
    """Ask for three things at once."""
    answers = task.ask_all(
        {
            "user_name": AskForm("What is your name?", Name),
            "greeting": AskModel("Write a greeting", max_tokens=50),
            "client_roots": AskRoots(),
        }
    )
    roots = len(answers["client_roots"])
    return f"{answers['greeting'].text} {answers['user_name'].name}, with {roots} roots"


@tool
def test_input_required_result_multi_round(task: TaskContext) -> str:
    """Ask twice, one after the other."""
    name = task.ask("Step 1: What is your name?", Name, key="step1").name
    color = task.ask(f"Step 2: {name}, what is your favourite colour?", Color, key="step2").color
    return f"{name} likes {color}"


@tool
def test_input_required_result_capabilities(task: TaskContext) -> str:
    """Ask only for what the client can be asked for."""
    requests: dict[str, AskForm[Name] | AskModel] = {}
    if "form" in task.client_can:
        requests["user_name"] = AskForm("What is your name?", Name)
    if "sampling" in task.client_can:
        requests["greeting"] = AskModel("Write a greeting", max_tokens=50)
    return f"Answered: {', '.join(task.ask_all(requests))}"


@prompt
def test_input_required_result_prompt(task: TaskContext) -> str:
    """Ask for what the prompt is about."""
    answer = task.ask("What context should the prompt use?", Context, key="user_context")
    return f"Consider this context: {answer.context}"
