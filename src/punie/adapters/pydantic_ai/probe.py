"""One small request, to see whether a model can be used at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.messages import ModelRequest
from pydantic_ai.settings import ModelSettings as RequestSettings

from punie.adapters.pydantic_ai.failures import run_error

if TYPE_CHECKING:
    from punie.adapters.pydantic_ai.conversation import Kit

ASKED = "Answer with the one word: ready"
MOST_TOKENS = 512
"""Room for a model that thinks first: some providers' answers cannot be read where it came to nothing else."""


async def ask_once(kit: Kit) -> str:
    """What the model answered, which may be nothing; some twenty tokens. Raises `EngineError` with its cause."""
    await kit.enter()
    try:
        answer = await model_request(
            kit.model, [ModelRequest.user_text_prompt(ASKED)], model_settings=RequestSettings(max_tokens=MOST_TOKENS)
        )
    except (AgentRunError, UserError, httpx2.HTTPError) as error:
        raise run_error(error, kit.reached) from error
    return answer.text or ""
