"""Pure functions that several plugins use; no plugin lives here."""
