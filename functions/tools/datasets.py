"""A catalogue of datasets, which clients read as resources. `publish_dataset` writes it.

Each entry is a parameter of Systems Manager's Parameter Store.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from mcp_tasks import NotFound, ToolError, resource

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,39}$", description="a-z, 0-9 and -")]

PREFIX: Final = "/datasets/"
PARAMETERS: Final = [
    f"arn:${{AWS::Partition}}:ssm:${{AWS::Region}}:${{AWS::AccountId}}:parameter{PREFIX}*"
]
READ: Final = {"actions": ["ssm:GetParameter"], "resources": PARAMETERS}
WRITE: Final = {
    "actions": ["ssm:PutParameter", "ssm:DeleteParameter"],
    "resources": PARAMETERS,
}


class Dataset(BaseModel):
    """An entry of the catalogue."""

    name: Name
    status: Literal["draft", "published"] = "draft"
    version: UUID
    """Of the task that wrote the entry: it must not touch what another task has written."""
    rows: dict[str, int]
    """By the names of the files."""


@resource("datasets://{name}", permissions=[READ])
def dataset(name: Name) -> Dataset:
    """Read a dataset's entry in the catalogue."""
    if (found := _find(name)) is None:
        raise NotFound(name)
    return found


def add(draft: Dataset) -> Dataset:
    """Add an entry, which is there once however often this runs for the same version.

    Raises ToolError when the catalogue has another dataset of that name.
    """
    ssm = _parameter_store()
    try:
        ssm.put_parameter(Name=PREFIX + draft.name, Type="String", Value=draft.model_dump_json())
    except ssm.exceptions.ParameterAlreadyExists:
        found = _find(draft.name)
        if found is None or found.version != draft.version:
            raise ToolError(f"There is a dataset {draft.name} already") from None
    return draft


def publish(draft: Dataset) -> Dataset:
    """Say in the catalogue that a dataset is published."""
    published = draft.model_copy(update={"status": "published"})
    _parameter_store().put_parameter(
        Name=PREFIX + draft.name, Value=published.model_dump_json(), Overwrite=True
    )
    return published


def remove(draft: Dataset) -> None:
    """Take an entry out of the catalogue: what undoes `add`."""
    found = _find(draft.name)
    if found is not None and found.version == draft.version:
        _parameter_store().delete_parameter(Name=PREFIX + draft.name)


def _find(name: str) -> Dataset | None:
    ssm = _parameter_store()
    try:
        parameter = ssm.get_parameter(Name=PREFIX + name)["Parameter"]
    except ssm.exceptions.ParameterNotFound:
        return None
    return Dataset.model_validate_json(parameter["Value"])


def _parameter_store() -> Any:
    import boto3  # comes with Lambda's runtime, and takes a while: not for those who need it not

    return boto3.client("ssm")
