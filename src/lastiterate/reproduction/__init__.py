"""Reproduces every figure and table of the five papers: `lastiterate reproduce`."""

TITLES = {
    "asoodeh2023": "Asoodeh and Diaz 2023: Privacy Loss of Noisy Stochastic Gradient Descent Might Converge Even for "
    "Non-Convex Losses",
    "boninsegna2023": "Boninsegna 2023: The Privacy Analysis of the Differential Private Stochastic Gradient Descent",
    "kong2025": "Kong and Ribero 2025: Privacy of the last iterate in cyclically-traversed DP-SGD on nonconvex composite "
    "losses",
    "balle2019": "Balle, Barthe, Gaboardi and Geumlek 2019: Privacy Amplification by Mixing and Diffusion Mechanisms",
    "bok2024": "Bok, Su and Altschuler 2024: Shifted Interpolation for Differential Privacy",
}
