"""Agent frameworks that use adk-memory: one module for each, which needs the extra of its name."""
