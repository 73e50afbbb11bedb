"""What is installed: one import package, `eyechart`, put together from folders of the repository.

All else stands in pyproject.toml. setuptools finds no packages under names that differ from their
folders, so the list is made here.
"""

from pathlib import Path

from setuptools import find_namespace_packages, setup

FOLDERS = {
    "eyechart": "eyechart",
    "eyechart.harness": "harness",
    "eyechart.providers": "providers",
    "eyechart.tasks": "tasks",
    "eyechart.reported": "results/reported",
}
"""Package -> its folder. `eyechart/harness` and `eyechart/providers` are links to the same folders,
for type checkers and editors, which read a checkout and not what is installed."""
LEFT_OUT = ["*__pycache__*"]

# A folder eyechart.egg-info at the top of the checkout would hide what is installed: its entry
# points are those of the last build.
Path("build").mkdir(exist_ok=True)

setup(
    options={"egg_info": {"egg_base": "build"}},
    package_dir=FOLDERS,
    packages=[
        *FOLDERS,
        *(
            f"{package}.{inner}"
            for package, folder in FOLDERS.items()
            if package != "eyechart"
            for inner in find_namespace_packages(folder, exclude=LEFT_OUT)
        ),
    ],
    include_package_data=False,  # of MANIFEST.in, which says what is in the sdist
    package_data={"": ["*"]},
)
