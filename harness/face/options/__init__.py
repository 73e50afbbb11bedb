"""What a command asks: its models, tasks and settings, looked up and checked."""

from eyechart.harness.face.options.run_options import models_of, shaping
from eyechart.harness.face.options.study import plans_of, refuse_doubtful

__all__ = ["models_of", "plans_of", "refuse_doubtful", "shaping"]
