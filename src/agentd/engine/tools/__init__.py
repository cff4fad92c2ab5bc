"""What agents may do, as plain functions. Permissions by stage, evidence and refusals are decided here."""
