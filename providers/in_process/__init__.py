"""What models in this process need: their files, the free memory, one thread, and batches."""
