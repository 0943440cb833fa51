"""The sixth model: the roofline at a share of the peaks, with a time for every layer and every further chip."""
