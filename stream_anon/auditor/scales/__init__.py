"""What published labels mean, per kind of hierarchy, by the arithmetic of the auditor alone."""
