"""OpenAI's API and those that copy it."""
