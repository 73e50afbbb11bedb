"""`python -m eyechart.harness.cli` is `bench`."""

from eyechart.harness.cli import main

main()
