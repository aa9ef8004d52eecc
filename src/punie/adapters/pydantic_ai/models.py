"""From a name and settings to a model that passes tool schemas on unchanged."""

from __future__ import annotations

import inspect
import json
from typing import Any

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.profiles import InlineDefsJsonSchemaTransformer, JsonSchemaTransformer, ModelProfile
from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
from pydantic_ai.settings import ModelSettings as RequestSettings

from punie.adapters.pydantic_ai.failures import set_up_error
from punie.domain.model.provider import ModelSettings

_PROBE = {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "string"}}}


class InlineWhereReferred(InlineDefsJsonSchemaTransformer):
    """For models that cannot follow `$ref`: a schema that uses it is inlined, every other one passes unchanged."""

    def walk(self) -> dict[str, Any]:
        """The schema to send."""
        return super().walk() if _refers(self.schema) else self.schema


def build_model(name: str, settings: ModelSettings) -> Model:
    """The model of that name. Raises `EngineError` where a key, a package or the name itself is missing."""
    given = {
        key: value
        for key, value in (("base_url", settings.base_url), ("api_key", settings.api_key))
        if value is not None
    }

    def provider(provider_name: str) -> Provider[Any]:
        made = infer_provider_class(provider_name)
        for key in given.keys() - inspect.signature(made).parameters.keys():
            raise UserError(f"the provider {provider_name} takes no {key} of its own")
        return made(**given)

    try:
        model = infer_model(name, provider if given else infer_provider)
        return verbatim(model)
    except (UserError, ImportError, ValueError, TypeError) as error:
        raise set_up_error(name, error) from error


def verbatim(model: Model) -> Model:
    """The same model with the rewriting of tool schemas switched off, as far as its API can take that.

    The library's rewriting of every schema stays for Google's models, directly and through OpenRouter, and for all of
    Bedrock's: their APIs take a dialect of JSON Schema. For Qwen, Llama, gpt-oss and others that do not see definitions
    a schema is inlined where it uses `$ref`, and else unchanged (`InlineWhereReferred`).
    """
    transformer = model.profile.get("json_schema_transformer")
    if transformer is None or model.provider is None or not _takes_json_schema(model, transformer):
        return model
    taking = inspect.signature(type(model)).parameters
    if "profile" not in taking or "provider" not in taking:
        return model
    inlines = not _refers(transformer(_PROBE, strict=None).walk())
    profile = ModelProfile(json_schema_transformer=InlineWhereReferred if inlines else None)
    make: Any = type(model)
    same: Model = make(model.model_name, provider=model.provider, profile=profile)
    return same


def _takes_json_schema(model: Model, transformer: type[JsonSchemaTransformer]) -> bool:
    known = (OpenAIJsonSchemaTransformer, InlineDefsJsonSchemaTransformer)
    return issubclass(transformer, known) or model.system == "anthropic"


def request_settings(settings: ModelSettings) -> RequestSettings:
    """The settings of every request."""
    wanted = RequestSettings()
    if settings.max_output_tokens is not None:
        wanted["max_tokens"] = settings.max_output_tokens
    if settings.temperature is not None:
        wanted["temperature"] = settings.temperature
    return wanted


def _refers(schema: dict[str, Any]) -> bool:
    return '"$ref":' in json.dumps(schema)
