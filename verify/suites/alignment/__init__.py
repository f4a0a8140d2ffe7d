"""Claims about the alignment certificate: derivations, two routes, Monte Carlo on four laws, and a trained network."""
