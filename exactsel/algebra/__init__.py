"""Linear algebra the bounds and problems need: spectra, curvature, relations, projections."""
