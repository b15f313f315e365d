"""How well a private model predicts at a given ε, beside the peers and the papers."""
