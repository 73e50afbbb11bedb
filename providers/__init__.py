"""Who answers: one module a provider, behind `providers.base.Provider`."""
