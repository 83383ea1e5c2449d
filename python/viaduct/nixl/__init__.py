"""Holds the packages nixl, nixl_cu12 and nixl_cu13 for the command `python -m viaduct.nixl run`."""
