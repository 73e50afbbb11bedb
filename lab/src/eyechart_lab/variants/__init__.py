"""The laboratory: small models that differ in one mechanism, trained, asked and probed alike."""
