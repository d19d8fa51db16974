"""The read side of the Schema Registry API, so that stock Avro deserialisers read our topics.

Subjects are our schemas' own names and, for each queue the caller may list, `<topic>-value` as
Kafka clients name it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from engine.shapes import Principal
from facade.http.operation import Answer, Call, Example, Operation
from facade.http.problem import Problem, ProblemError
from schemas import registry
from schemas.topics import queue_topics

if TYPE_CHECKING:
    from engine.engine import Engine

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_ERROR_CODES = {
    "subject_not_found": 40401,
    "version_not_found": 40402,
    "schema_not_found": 40403,
    "invalid_version": 42202,
}
_SUFFIX = "-value"
_PAGE = 1000
_LARGEST = 2**31 - 1


_Schema = Annotated[str, Meta(description="The Avro schema, as JSON text.")]


class RegistryError(Struct, frozen=True):
    """An error in the registry's form."""

    error_code: Annotated[int, Meta(description="The registry's code: the status, and two digits at most.")]
    message: Annotated[str, Meta(description="What went wrong, for people.")]


class SchemaReply(Struct, frozen=True):
    """A schema as JSON text."""

    schema: _Schema


class VersionReply(Struct, frozen=True):
    """A version of a subject."""

    subject: Annotated[str, Meta(description="The subject's name.")]
    version: Annotated[int, Meta(description="The version's number, from 1.")]
    id: Annotated[int, Meta(description="The schema's id.")]
    schema: _Schema


def render(problem: Problem) -> Answer:
    """A problem in the registry's form."""
    code = _ERROR_CODES.get(problem.code, problem.status)
    return Answer(RegistryError(code, problem.detail), problem.status, media_type=MEDIA_TYPE)


def _answer(content: Any) -> Answer:
    return Answer(content, media_type=MEDIA_TYPE)


def _number(text: str, code: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and 0 < int(text) <= _LARGEST):
        raise ProblemError(code, given=text)
    return int(text)


class Registry:
    """The operations, which need the first part of the topics' names."""

    def __init__(self, topic_prefix: str) -> None:
        self._topics = queue_topics(topic_prefix)

    async def subjects(self, engine: Engine, call: Call) -> Answer:
        """All subjects that the caller may see."""
        found = list(registry.subjects())
        after: str | None = None
        while True:
            names, after = await engine.queues.list_queues(call.by, "", _PAGE, after)
            found += [f"{self._topics}{name}{_SUFFIX}" for name in names]
            if after is None:
                return _answer(found)

    async def versions(self, engine: Engine, call: Call) -> Answer:
        """The versions of a subject."""
        return _answer(registry.versions(await self._own(engine, call.by, call.path["subject"])))

    async def version(self, engine: Engine, call: Call) -> Answer:
        """One version of a subject; `latest` and -1 are the newest."""
        subject, wanted = call.path["subject"], call.path["version"]
        own = await self._own(engine, call.by, subject)
        number = registry.versions(own)[-1] if wanted in ("latest", "-1") else _number(wanted, "invalid_version")
        try:
            schema_id = registry.version_id(own, number)
        except KeyError:
            raise ProblemError("version_not_found", given=wanted) from None
        return _answer(VersionReply(subject, number, schema_id, registry.schema_text(schema_id)))

    async def schema(self, engine: Engine, call: Call) -> Answer:
        """The schema of an id."""
        try:
            return _answer(SchemaReply(registry.schema_text(_number(call.path["id"], "schema_not_found"))))
        except KeyError:
            raise ProblemError("schema_not_found", given=call.path["id"]) from None

    async def types(self, engine: Engine, call: Call) -> Answer:
        """The kinds of schemas there are."""
        return _answer(["AVRO"])

    async def _own(self, engine: Engine, by: Principal, subject: str) -> str:
        """The name of the schemas that `subject` stands for. Raises ProblemError
        `subject_not_found`.
        """
        if subject in registry.subjects():
            return subject
        if subject.startswith(self._topics) and subject.endswith(_SUFFIX):
            queue = subject[len(self._topics) : -len(_SUFFIX)]
            # Names come in order, so a queue of exactly this name is the first of its prefix.
            names, _ = await engine.queues.list_queues(by, queue, 1, None)
            if names and names[0] == queue:
                return "message"
        raise ProblemError("subject_not_found", f"Subject '{subject[:200]}' not found.", given=subject)

    def operations(self) -> tuple[Operation, ...]:
        """The paths of the registry."""
        schema = '{"type":"record","name":"Message","fields":[]}'
        one = {"subject": "lw.q.orders-value", "version": 1, "id": 1, "schema": schema}
        return (
            _get(
                "list_subjects", "/subjects", "All subjects", self.subjects, list[str], ["message", "lw.q.orders-value"]
            ),
            _get(
                "list_versions", "/subjects/{subject}/versions", "Versions of a subject", self.versions, list[int], [1]
            ),
            _get(
                "get_version",
                "/subjects/{subject}/versions/{version}",
                "A version of a subject",
                self.version,
                VersionReply,
                one,
            ),
            _get(
                "get_schema",
                "/schemas/ids/{id}",
                "The schema of an id",
                self.schema,
                SchemaReply,
                {"schema": schema},
                anonymous=True,
            ),
            _get(
                "list_schema_types",
                "/schemas/types",
                "Kinds of schemas",
                self.types,
                list[str],
                ["AVRO"],
                anonymous=True,
            ),
        )


def _get(
    name: str, path: str, summary: str, run: Any, reply: Any, example: Any, *, anonymous: bool = False
) -> Operation:
    codes = {
        "list_versions": ("subject_not_found",),
        "get_version": ("subject_not_found", "version_not_found", "invalid_version"),
        "get_schema": ("schema_not_found",),
    }
    return Operation(
        name=name,
        method="GET",
        path=path,
        group="Schema registry",
        summary=summary,
        run=run,
        replies={200: reply},
        example=Example(reply=example),
        codes=codes.get(name, ()),
        anonymous=anonymous,
        media_type=MEDIA_TYPE,
        render=render,
    )
