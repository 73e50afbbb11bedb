"""`python -m eyechart.harness` is `bench`."""

from eyechart.harness.cli import main

main()
