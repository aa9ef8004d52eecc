"""Rules, modes, policy, questions, grants and the audit trail."""
