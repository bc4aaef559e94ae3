"""What the checks of a contract are made of: rules with names, plain definitions, policies, rows and runs."""
