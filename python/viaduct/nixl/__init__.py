"""The packages nixl, nixl_cu12 and nixl_cu13, for one command: python -m viaduct.nixl run."""
