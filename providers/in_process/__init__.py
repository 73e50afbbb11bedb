"""Code for models that compute in this process: model files, free memory, one thread, batches."""
