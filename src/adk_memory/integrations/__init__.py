"""Adapters to frameworks and tools: a module for each, which needs the extra of its name."""
