"""The inside of a model beside its behaviour, and rotary positions without a model."""
