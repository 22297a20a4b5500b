"""Durable operations of function tools: what was done is kept in a journal, and not done again."""
