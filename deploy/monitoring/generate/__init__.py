"""Makes dashboard and alert rules from the table of metrics: ``make monitoring``; a test keeps the files current."""
