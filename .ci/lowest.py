"""Print the lowest versions that pyproject.toml allows, as constraints for pip."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
BOUND = re.compile(r"([A-Za-z0-9._-]+)>=([0-9.]+)")


def lowest(project: dict) -> list[str]:
    """Return a constraint for each dependency with a lower bound, those of all extras included."""
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    matches = [BOUND.fullmatch(requirement) for group in groups for requirement in group]
    return sorted({f"{match[1]}=={match[2]}" for match in matches if match})


if __name__ == "__main__":
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    sys.stdout.write("\n".join(lowest(tomllib.loads(text)["project"])) + "\n")
