"""A report that can be signed: one page with the claim, what it rests on, and the certificate that proves it."""
