"""From a name and settings to a model that passes tool schemas on unchanged."""

from __future__ import annotations

import inspect
import json
from typing import Any

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.profiles import InlineDefsJsonSchemaTransformer, JsonSchemaTransformer, ModelProfile
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
from pydantic_ai.settings import ModelSettings as RequestSettings

from punie.adapters.pydantic_ai.engine import ModelSettings
from punie.adapters.pydantic_ai.failures import set_up_error

OWN_DIALECT = ("google", "google-cloud", "bedrock")
"""Providers whose API takes a dialect of JSON Schema: there, and only there, the library rewrites every schema."""


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
    """The same model with the rewriting of tool schemas switched off, as far as its API can take that (R-05)."""
    transformer = model.profile.get("json_schema_transformer")
    if transformer is None or model.system in OWN_DIALECT or model.provider is None:
        return model
    taking = inspect.signature(type(model)).parameters
    if "profile" not in taking or "provider" not in taking:
        return model
    profile = ModelProfile(json_schema_transformer=_instead_of(transformer))
    make: Any = type(model)
    same: Model = make(model.model_name, provider=model.provider, profile=profile)
    return same


def request_settings(settings: ModelSettings) -> RequestSettings:
    """What goes with every request."""
    wanted = RequestSettings()
    if settings.max_output_tokens is not None:
        wanted["max_tokens"] = settings.max_output_tokens
    if settings.temperature is not None:
        wanted["temperature"] = settings.temperature
    return wanted


def _instead_of(transformer: type[JsonSchemaTransformer]) -> type[JsonSchemaTransformer] | None:
    return InlineWhereReferred if issubclass(transformer, InlineDefsJsonSchemaTransformer) else None


def _refers(schema: dict[str, Any]) -> bool:
    return '"$ref":' in json.dumps(schema)
