"""What a course needs: problems and their marks, slides, a lab on held-back rows, the cheat sheet."""
