"""Adapters to agent frameworks and tools: one module for each, which needs the extra of its name."""
