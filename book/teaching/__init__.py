"""Teaching material: problems with marking, slides, a lab on held-back rows, the cheat sheet."""
