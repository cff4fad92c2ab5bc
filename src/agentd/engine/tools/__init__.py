"""What agents may do, as plain functions: stage rights, evidence and refusals are decided here."""
