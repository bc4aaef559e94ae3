"""What a policy is written in, whatever it says: strict settings, small types, tables in files, registries of kinds."""
