"""Where the packages stand: `engine/` is installed as `cellformer.engine`, and so on.

An editable install finds them by an import hook, which mypy and editors do not follow. So it makes
`build/links/cellformer`, too: the package as it is installed, in links.
"""

import os
import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.editable_wheel import editable_wheel

ROOMS = ("engine", "exporters", "workbooks")
ROOT = Path(__file__).parent
PACKAGES = find_packages(include=["cellformer*"])
for room in ROOMS:
    inside = find_packages(include=[room, f"{room}.*"])
    PACKAGES += [f"cellformer.{package}" for package in inside]


def link(target: Path, place: Path) -> None:
    """Make a link. Windows makes those of folders as junctions, which need no rights."""
    if os.name != "nt":
        place.symlink_to(os.path.relpath(target, place.parent))
    elif target.is_dir():
        import _winapi

        _winapi.CreateJunction(str(target), str(place))
    else:
        os.link(target, place)


class Editable(editable_wheel):
    """An editable install that makes the links."""

    def run(self) -> None:
        package = ROOT / "build" / "links" / "cellformer"
        shutil.rmtree(package, ignore_errors=True)  # it does not follow links
        package.mkdir(parents=True)
        for target in [*(ROOT / "cellformer").iterdir(), *(ROOT / room for room in ROOMS)]:
            if target.name != "__pycache__":
                link(target, package / target.name)
        super().run()


setup(
    packages=PACKAGES,
    package_dir={f"cellformer.{room}": room for room in ROOMS},
    cmdclass={"editable_wheel": Editable},
)
