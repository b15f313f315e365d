"""How long it takes: the shift engine from 10⁴ to 10⁷ steps, and an epoch of training."""
