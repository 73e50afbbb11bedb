"""What is asked: task files read, validated, tried out, and drawn from."""
