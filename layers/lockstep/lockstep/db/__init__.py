"""Connections, transactions and the engine's errors, by their own names."""
