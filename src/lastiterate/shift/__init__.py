"""The shift engine: any schedule of payments is a proof; `certify` checks one, `optimise` finds the best."""
