"""The verdict on one reply; imports nothing but itself."""
