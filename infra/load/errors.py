"""What a person gave that cannot be modelled; the text begins with its name."""


class ModelError(Exception):
    """One of BAD_OPTION, BAD_FIGURES, BAD_ASSUMPTIONS, BAD_QUOTAS, BAD_PRICES."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name
