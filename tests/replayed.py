"""The kernel's answers to proofs and claims as a certificate holds them."""

from __future__ import annotations

from typing import Any

from lastiterate.certificate.codec import read_claim, read_proof
from lastiterate.kernel import check as kernel
from lastiterate.kernel.check import Proved


def check(proof: dict[str, Any], claim: dict[str, Any]) -> None:
    """Return if this proof proves this claim; else raise `Refused`."""
    kernel.check(read_proof(proof), read_claim(claim))


def proved(proof: dict[str, Any]) -> Proved:
    """Return what this proof proves."""
    return kernel.proved(read_proof(proof))
