"""What a call will probably take, told before it runs."""

from __future__ import annotations

from punie.application.desk.call import CallRequest
from punie.application.desk.statistics import CallStatistics
from punie.application.tools.session_tool import KnowsFiles
from punie.domain.tools.execution import ResourceEstimate
from punie.domain.tools.metadata import Permission
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolSource
from punie.domain.values.json_value import utf8_size


def expected_s(descriptor: ToolDescriptor, bytes_in: int, statistics: CallStatistics) -> float | None:
    """How long a call is expected to take, in seconds; None for a tool that declares no time.

    `bytes_in` is the size of its arguments as JSON. Earlier calls of about that size that took longer than the tool
    declares correct it. They say nothing by themselves: `run_command` is quick once and slow the next time.
    """
    declared_ms = descriptor.details.estimated_time_ms
    if declared_ms is None:
        return None
    seen = statistics.expected(descriptor.name, bytes_in)
    return max(declared_ms, 0.0 if seen is None else seen.elapsed_ms) / 1000


def estimated(request: CallRequest, statistics: CallStatistics) -> ResourceEstimate | None:
    """By what the session knows already: nothing is read or run. None where that is the arguments' size alone.

    Time and text are those of earlier calls of about that size, else the time that the tool declares; of a file that
    is read whole the text is the file.
    """
    bytes_in = utf8_size(request.arguments_json)
    descriptor = request.tool.descriptor
    seen = statistics.expected(descriptor.name, bytes_in)
    declared_ms = descriptor.details.estimated_time_ms
    time_ms = None if declared_ms is None else float(declared_ms)
    time_ms, bytes_out = (time_ms, None) if seen is None else (seen.elapsed_ms, seen.bytes_out)
    file_bytes = _file_bytes(request)
    if file_bytes is not None and descriptor.kind is ToolKind.READ:
        bytes_out = float(min(file_bytes, request.limits.output_bytes))
    files = tuple(where.path for where in request.context.locations)
    memory_mb = request.context.memory_mb if _starts_programs(request) else None
    if time_ms is None and bytes_out is None and file_bytes is None and memory_mb is None and not files:
        return None
    return ResourceEstimate(time_ms, bytes_out, bytes_in, files, file_bytes, memory_mb)


def _file_bytes(request: CallRequest) -> int | None:
    tool = request.tool
    return tool.file_bytes(request.arguments, request.context) if isinstance(tool, KnowsFiles) else None


def _starts_programs(request: CallRequest) -> bool:
    """Only programs of our own tools are bounded by our limits."""
    said = request.tool.descriptor
    return said.source is ToolSource.BUILT_IN and Permission.EXECUTE in said.details.required_permissions
