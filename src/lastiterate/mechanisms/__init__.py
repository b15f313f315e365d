"""Mechanisms other than training: kernels, couplings, diffusions, the exponential mechanism; analysed and runnable."""
