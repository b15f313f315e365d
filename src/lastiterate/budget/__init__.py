"""A privacy budget that a team shares: a ledger, what its entries come to, and its certificate."""
