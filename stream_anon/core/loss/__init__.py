"""Loss measures of the literature; one file per family, all plain functions of arrays."""
