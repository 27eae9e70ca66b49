"""ELITR-Bench (Thonet, Rozen and Besacier, 2024): questions about transcripts of meetings."""
