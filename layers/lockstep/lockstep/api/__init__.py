"""The HTTP edge: what comes in is checked here, by name, and what goes out takes its form here."""
