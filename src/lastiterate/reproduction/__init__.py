"""Every figure and table of the five papers, made again: `lastiterate reproduce`."""

TITLES = {
    "asoodeh2023": "Asoodeh and Diaz 2023: privacy loss of noisy SGD for non-convex losses",
    "boninsegna2023": "Boninsegna 2023: a survey of DP-SGD",
    "kong2025": "Kong and Ribero 2025: last iterate of cyclic DP-SGD",
    "balle2019": "Balle, Barthe, Gaboardi and Geumlek 2019: mixing and diffusion",
    "bok2024": "Bok, Su and Altschuler 2024: shifted interpolation",
}
