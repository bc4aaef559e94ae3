"""Tables by column, through Arrow: rows of Arrow tables, plain blocks of CSV, and published columns."""
