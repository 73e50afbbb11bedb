"""`--dry-run`: what would be asked and what it would cost, without sending or writing anything."""
