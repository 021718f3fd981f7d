"""Takes secrets out of a text before it is stored, by the rules of the keeper."""

from collections.abc import Sequence

from loopwright.keeper.redact import Redactor, forms_of


def redacted(text: str, secrets: Sequence[str]) -> str:
    """Return the text without these secrets and without what has the shape of one."""
    clean = Redactor(forms_of(list(secrets))).redact(text.encode("utf-8", "surrogatepass"))
    return clean.decode("utf-8", "replace")
