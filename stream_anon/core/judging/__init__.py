"""Judge groups by counting, as often as a search asks, and veto blocks without choosing their rows."""
